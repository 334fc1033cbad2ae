/** Draws both bundles of curves of every comparison in one picture, readable on a light and on a dark background. */
import { meanOf } from './interval.ts';
import type { Bundle, CurveResult } from './judge.ts';
import { ENTRIES } from './settings.ts';

const panel = { width: 300, height: 220, left: 44, top: 34, gap: 24 };
const bottom = 66;
const sides = ['petrel', 'trl'] as const;
const names = { petrel: 'petrel', trl: 'TRL' } as const;

const style = `
  text { font: 12px sans-serif; fill: #333 }
  .title { font-weight: bold }
  .grid { stroke: #8884; stroke-width: 1 }
  .petrel { stroke: #c2410c } .trl { stroke: #1d4ed8 }
  .seed { fill: none; stroke-width: 1; opacity: 0.3 }
  .mean { fill: none; stroke-width: 2.5 }
  .trl.mean { stroke-dasharray: 7 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd }
    .petrel { stroke: #fb923c } .trl { stroke: #7aa7ff }
  }`;

/** An SVG. Thin lines are seeds, thick ones their means. */
export function picture(results: readonly CurveResult[]): string {
  const all = results.flatMap(({ petrel, trl }) => [...petrel, ...trl].flat());
  const from = Math.floor(Math.min(...all) * 10) / 10;
  const width = panel.left + results.length * (panel.width + panel.gap);
  const height = panel.top + panel.height + bottom;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    '<title>Training reward by iteration, petrel and TRL</title>',
    `<style>${style}\n</style>`,
    ...results.flatMap((result, i) => drawPanel(result, panel.left + i * (panel.width + panel.gap), from)),
    ...legend(height - 14),
    '</svg>',
    '',
  ].join('\n');
}

function drawPanel({ name, petrel, trl }: CurveResult, x0: number, from: number): string[] {
  const iterations = petrel[0]?.length ?? 0;
  const x = (i: number) => x0 + (panel.width * i) / Math.max(1, iterations - 1);
  const y = (reward: number) => panel.top + (panel.height * (1 - reward)) / (1 - from);
  const line = (kind: string, rewards: readonly number[]) =>
    `<polyline class="${kind}" points="${rewards.map((reward, i) => `${x(i).toFixed(1)},${y(reward).toFixed(1)}`).join(' ')}"/>`;
  const bundles = { petrel, trl };
  const title = ENTRIES.find((entry) => entry.name === name)?.title ?? name;
  return [
    `<text class="title" x="${x0}" y="${panel.top - 14}">${title}</text>`,
    ...ticks(from).flatMap((reward) => [
      `<line class="grid" x1="${x0}" x2="${x0 + panel.width}" y1="${y(reward).toFixed(1)}" y2="${y(reward).toFixed(1)}"/>`,
      `<text x="${x0 - 6}" y="${(y(reward) + 4).toFixed(1)}" text-anchor="end">${reward.toFixed(1)}</text>`,
    ]),
    ...[1, Math.round(iterations / 2), iterations].map(
      (k) => `<text x="${x(k - 1).toFixed(1)}" y="${panel.top + panel.height + 18}" text-anchor="middle">${k}</text>`,
    ),
    ...sides.flatMap((side) => bundles[side].map((rewards) => line(`${side} seed`, rewards))),
    ...sides.map((side) => line(`${side} mean`, meanCurve(bundles[side]))),
  ];
}

const meanCurve = (bundle: Bundle): number[] =>
  (bundle[0] ?? []).map((_, i) => meanOf(bundle.map((rewards) => rewards[i] ?? Number.NaN)));

function ticks(from: number): number[] {
  const tenths = Math.round((1 - from) * 10);
  return Array.from({ length: tenths + 1 }, (_, i) => from + i / 10);
}

function legend(y: number): string[] {
  const entries = sides.flatMap((side, i) => {
    const x = panel.left + i * 110;
    return [
      `<line class="${side} mean" x1="${x}" x2="${x + 40}" y1="${y - 4}" y2="${y - 4}"/>`,
      `<text x="${x + 48}" y="${y}">${names[side]}</text>`,
    ];
  });
  return [
    ...entries,
    `<text x="${panel.left + 230}" y="${y}">mean reward of an iteration's responses; thin: each seed</text>`,
  ];
}
