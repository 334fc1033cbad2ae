/** The progress of a run, as text. Pure: the time comes in, lines go out. */
import { showCount, showDuration, showNumber } from '../../core/quantities.ts';
import type { RunProgress } from '../../api/runs/follow.ts';
import { fit } from './width.ts';

/** One line that says it all: `iteration 12/60  reward 0.41  accuracy 0.52  8.1k tokens/s  1 m 12 s left`. */
export function progressLine(frame: RunProgress): string {
  const parts = [
    `iteration ${frame.iteration}/${frame.iterations}`,
    frame.reward === undefined ? undefined : `reward ${frame.reward.toFixed(3)}`,
    frame.loss === undefined ? undefined : `loss ${showNumber(frame.loss)}`,
    frame.accuracy === undefined ? undefined : `${frame.validationMeasure ?? 'accuracy'} ${frame.accuracy.toFixed(3)}`,
    frame.tokensPerSecond === undefined ? undefined : `${showCount(frame.tokensPerSecond)} tokens/s`,
    frame.state === 'running' ? leftText(frame) : frame.state,
  ];
  return parts.filter((part) => part !== undefined).join('  ');
}

function leftText(frame: RunProgress): string | undefined {
  return frame.remainingS === undefined ? undefined : `${showDuration(frame.remainingS)} left`;
}

/** The live region of a terminal: what was done, what is being done, and what Ctrl-C would do. */
export function liveRegion(frame: RunProgress, columns: number): string[] {
  const bar = `${progressBar(frame.iteration / frame.iterations, 24)} `;
  const activity = frame.activity === undefined ? '' : `${frame.activity} · `;
  return [`${bar}${progressLine(frame)}`, `${activity}Ctrl-C leaves the run going; petrel status ${frame.runId}`].map(
    (line) => fit(line, columns),
  );
}

/** `[#########---------------]`. */
export function progressBar(share: number, width: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * width);
  return `[${'#'.repeat(full)}${'-'.repeat(width - full)}]`;
}
