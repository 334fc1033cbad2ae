/** The progress of a run, as text. Pure: the time comes in, lines go out. */
import { counted, showCount, showDuration, showNumber, showUsd } from '../../core/quantities.ts';
import { warningTitle } from '../../core/run-warnings.ts';
import type { RunProgress } from '../../api/index.ts';
import { sparkline } from './plot.ts';
import { displayWidth, fit } from './width.ts';
import { wrapText } from './wrap.ts';

/** Iterations of the little curve. */
const sparkWidth = 24;
const barWidth = 24;

/** One line that says it all: `iteration 12/60  reward 0.41  accuracy 0.52  8.1k tokens/s  1 m 12 s left`. */
export function progressLine(frame: RunProgress): string {
  return [iterationPart(frame), ...resultParts(frame), fleetPart(frame), timePart(frame)]
    .filter((part) => part !== undefined)
    .join('  ');
}

const iterationPart = ({ iteration, iterations }: RunProgress): string => `iteration ${iteration}/${iterations}`;

/** What the newest iteration gave. `spark`: with the curve of the last rewards. */
function resultParts(frame: RunProgress, spark = false): (string | undefined)[] {
  const curve = spark && (frame.rewards?.length ?? 0) > 1 ? ` ${sparkline(frame.rewards ?? [], sparkWidth)}` : '';
  return [
    frame.reward === undefined ? undefined : `reward ${frame.reward.toFixed(3)}${curve}`,
    frame.loss === undefined ? undefined : `loss ${showNumber(frame.loss)}`,
    frame.accuracy === undefined ? undefined : `${frame.validationMeasure ?? 'accuracy'} ${frame.accuracy.toFixed(3)}`,
    frame.tokensPerSecond === undefined ? undefined : `${showCount(frame.tokensPerSecond)} tokens/s`,
  ];
}

/** `6 workers on 4 machines · $0.0051`; nothing where only this machine works, which costs nothing. */
function fleetPart({ fleet }: RunProgress): string | undefined {
  if (fleet === undefined || (fleet.machines < 2 && fleet.usd === undefined)) return undefined;
  const { workers, machines, usd } = fleet;
  const who = `${counted(workers, 'worker')} on ${counted(machines, 'machine')}`;
  return usd === undefined ? who : `${who} · ${showUsd(usd)}`;
}

/** The time left while it runs and iterations are to come, else its state. */
function timePart({ state, remainingS, stuck }: RunProgress): string | undefined {
  if (state !== 'running') return state;
  if (stuck !== undefined) return 'waiting';
  return remainingS === undefined ? undefined : `${showDuration(remainingS)} left`;
}

/**
 * The live region of a terminal: how far it is, what the newest iteration gave, who works, what is being done, what
 * speaks against it. The time left stands in the first line, so that a narrow terminal shows it. Only a line with a
 * command may be longer than `columns`: a command that is cut cannot be typed.
 */
export function liveRegion(frame: RunProgress, columns: number): string[] {
  const bar = progressBar(frame.iteration / frame.iterations, barWidth);
  const head = [`${bar} ${iterationPart(frame)}`, timePart(frame)].filter((part) => part !== undefined).join('  ');
  const results = resultParts(frame, true).filter((part) => part !== undefined);
  const fleet = fleetPart(frame);
  return [
    head,
    ...(results.length === 0 ? [] : [results.join('  ')]),
    ...(fleet === undefined ? [] : [fleet]),
    ...doingLines(frame, columns),
    ...warningLines(frame, columns),
  ].map((line) => (line.includes('petrel ') ? line : fit(line, columns)));
}

/** What was seen; what to do takes too many lines. */
function warningLines({ runId, warnings = [] }: RunProgress, columns: number): string[] {
  const lines = warnings.flatMap((warning) => wrapText(warningTitle(warning), columns).split('\n'));
  return lines.length === 0 ? [] : [...lines, `what to do: petrel status ${runId}`];
}

/** What the run does, in two lines when the terminal is too narrow for one. */
function doingLines(frame: RunProgress, columns: number): string[] {
  const line = `${doingText(frame)} · ${interruptHint}`;
  return displayWidth(line) <= columns ? [line] : [doingText(frame), interruptHint];
}

const interruptHint = 'Ctrl-C leaves the run going';

function doingText({ runId, state, iteration, iterations, activity, stuck }: RunProgress): string {
  if (state === 'paused') return `paused: petrel resume ${runId}`;
  if (stuck !== undefined) return stuck;
  if (activity !== undefined) return activity;
  if (state === 'running' && iteration >= iterations) return 'last validation and checkpoint';
  return state === 'queued' ? 'waiting for a worker' : 'next iteration';
}

/** `[#########---------------]`. */
export function progressBar(share: number, width: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * width);
  return `[${'#'.repeat(full)}${'-'.repeat(width - full)}]`;
}
