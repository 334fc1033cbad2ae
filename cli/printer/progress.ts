/** The progress of a run, as text. Pure: the time comes in, lines go out. */
import { showCount, showDuration, showNumber } from './quantities.ts';
import { fit } from './width.ts';

/** What is known of a run at a moment. */
export interface ProgressFrame {
  readonly runId: string;
  readonly state: string;
  /** Committed iterations. */
  readonly iteration: number;
  /** Of the whole run, when known. */
  readonly iterations?: number;
  /** What it is doing now: `rollout 37/64`, `waiting for a worker with role trainer`. */
  readonly activity?: string;
  /** Mean score of the newest iteration. */
  readonly reward?: number;
  /** Newest validation accuracy. */
  readonly accuracy?: number;
  readonly loss?: number;
  readonly tokensPerSecond?: number;
  readonly elapsedS: number;
  readonly remainingS?: number;
}

/** Seconds left: the median of the last iterations, times those to come. undefined before the first. */
export function timeLeft(iterationSeconds: readonly number[], iterationsLeft: number): number | undefined {
  const last = iterationSeconds.slice(-9).sort((a, b) => a - b);
  const median = last[Math.floor(last.length / 2)];
  return median === undefined ? undefined : median * Math.max(0, iterationsLeft);
}

/** One line that says it all: `iteration 12/60  reward 0.41  accuracy 0.52  8.1k tokens/s  1 m 12 s left`. */
export function progressLine(frame: ProgressFrame): string {
  const of = frame.iterations === undefined ? '' : `/${frame.iterations}`;
  const parts = [
    `iteration ${frame.iteration}${of}`,
    frame.reward === undefined ? undefined : `reward ${frame.reward.toFixed(3)}`,
    frame.loss === undefined ? undefined : `loss ${showNumber(frame.loss)}`,
    frame.accuracy === undefined ? undefined : `accuracy ${frame.accuracy.toFixed(3)}`,
    frame.tokensPerSecond === undefined ? undefined : `${showCount(frame.tokensPerSecond)} tokens/s`,
    frame.state === 'running' ? leftText(frame) : frame.state,
  ];
  return parts.filter((part) => part !== undefined).join('  ');
}

function leftText(frame: ProgressFrame): string | undefined {
  return frame.remainingS === undefined ? undefined : `${showDuration(frame.remainingS)} left`;
}

/** The live region of a terminal: what was done, what is being done, and what Ctrl-C would do. */
export function liveRegion(frame: ProgressFrame, columns: number): string[] {
  const bar = frame.iterations === undefined ? '' : `${progressBar(frame.iteration / frame.iterations, 24)} `;
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
