/** Workers, losses and reward of a run over time, as an SVG. */
import type { Moment, Played } from './play.ts';

const size = { width: 720, left: 48, right: 12 };
const panels = { workers: { top: 28, height: 96 }, reward: { top: 160, height: 120 } };

export function picture({ moments, rewards, seconds }: Played, name: string): string {
  const x = (at: number) => size.left + ((size.width - size.left - size.right) * at) / Math.max(1, seconds);
  const most = Math.max(1, ...moments.map(({ workers }) => workers));
  const workersY = (count: number) => panels.workers.top + panels.workers.height * (1 - count / most);
  const [low, high] = [Math.min(0, ...rewards), Math.max(0.01, ...rewards)];
  const rewardY = (value: number) => panels.reward.top + panels.reward.height * (1 - (value - low) / (high - low));
  const bottom = panels.reward.top + panels.reward.height;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${bottom + 32}" font-family="sans-serif" font-size="11">
<title>Machines, losses and reward of a run with the trace ${escaped(name)}</title>
<rect width="100%" height="100%" fill="white"/>
<text x="${size.left}" y="16" font-size="13">A run on spot machines: ${escaped(name)}</text>
${axis(panels.workers, `machines`, `0`, String(most))}
${axis(panels.reward, 'reward', low.toFixed(2), high.toFixed(2))}
${lossMarks(moments, x)}
<path d="${steps(moments.map(({ at, workers }) => [x(at), workersY(workers)]))}" fill="none" stroke="#1f6f8b" stroke-width="2"/>
<polyline points="${rewardPoints(moments, rewards, x, rewardY)}" fill="none" stroke="#b3541e" stroke-width="2"/>
<text x="${size.left}" y="${bottom + 16}">0 s</text>
<text x="${size.width - size.right}" y="${bottom + 16}" text-anchor="end">${seconds.toFixed(0)} s</text>
<text x="${size.width / 2}" y="${bottom + 16}" text-anchor="middle" fill="#c0392b">dashed: a machine is lost</text>
</svg>
`;
}

function axis({ top, height }: { top: number; height: number }, title: string, low: string, high: string): string {
  const right = size.width - size.right;
  return `<path d="M${size.left} ${top}V${top + height}H${right}" fill="none" stroke="#999"/>
<text x="${size.left - 6}" y="${top + 8}" text-anchor="end">${high}</text>
<text x="${size.left - 6}" y="${top + height}" text-anchor="end">${low}</text>
<text x="${size.left + 6}" y="${top + 10}" fill="#555">${title}</text>`;
}

/** Marks where the number of lost machines has grown. */
function lossMarks(moments: readonly Moment[], x: (at: number) => number): string {
  const bottom = panels.reward.top + panels.reward.height;
  return moments
    .filter(({ lost }, i) => lost > (moments[i - 1]?.lost ?? lost))
    .map(
      ({ at }) =>
        `<path d="M${x(at).toFixed(1)} ${panels.workers.top}V${bottom}" stroke="#c0392b" stroke-dasharray="3 3"/>`,
    )
    .join('\n');
}

const steps = (points: readonly (readonly [number, number])[]): string =>
  points
    .map(([px, py], i) => (i === 0 ? `M${px.toFixed(1)} ${py.toFixed(1)}` : `H${px.toFixed(1)}V${py.toFixed(1)}`))
    .join('');

/** The reward of an iteration stands where it was committed. */
function rewardPoints(
  moments: readonly Moment[],
  rewards: readonly number[],
  x: (at: number) => number,
  y: (value: number) => number,
): string {
  return rewards
    .flatMap((reward, i) => {
      const moment = moments.find(({ iteration }) => iteration > i);
      return moment === undefined ? [] : `${x(moment.at).toFixed(1)},${y(reward).toFixed(1)}`;
    })
    .join(' ');
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
