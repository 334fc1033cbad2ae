/** The status of runs, workers and the stack, for people. */
import type { Printer } from '../printer/printer.ts';
import { reachOf } from '../../core/reach.ts';
import { showMoment, showNumber, showUsd } from '../../core/quantities.ts';
import { warningText } from '../../core/run-warnings.ts';
import { refusedHint, refusedText } from '../../core/wire/engine-proof.ts';
import { activityText } from '../../api/index.ts';
import type { RunStatus, WorkerStatus } from '../../api/index.ts';
import { wrapOwnText } from '../printer/wrap.ts';
import { renderFields, renderTable, widthFor } from '../printer/table.ts';
import { rateText } from './fleet-text.ts';
import { iterationText, nextCommand, styledState } from './words.ts';

type Field = readonly [name: string, value: string | number | undefined];

export function runStatusText(run: RunStatus, printer: Printer, now: Date): string {
  const fields = renderFields(fieldsOf(run, printer, now), printer.stdout);
  const workers = run.workers.length === 0 ? [] : [workerTable(run.workers, printer)];
  const { columns, typed } = printer.stdout;
  const warnings = run.warnings.map((warning) =>
    printer.style('yellow', wrapOwnText(warningText(warning, run.runId), columns, typed)),
  );
  return [fields, ...warnings, ...workers, `next: ${nextCommand(run)}`].join('\n\n');
}

function fieldsOf(run: RunStatus, printer: Printer, now: Date): Field[] {
  return [
    ['run', run.runId],
    ['state', styledState(run, printer)],
    ['why', run.reason === undefined ? undefined : reasonText(run.reason)],
    ['iteration', iterationText(run)],
    [
      'controlled',
      run.owner === null
        ? undefined
        : run.foreign === true
          ? `by another stack: ${run.owner}`
          : `from this machine (${run.owner})`,
    ],
    ['doing', doingText(run)],
    ['waiting', run.queued === undefined ? undefined : printer.style('yellow', run.queued)],
    ['reward', run.reward?.toFixed(3)],
    ['loss', run.loss === null ? undefined : showNumber(run.loss)],
    [
      run.validationMeasure ?? 'accuracy',
      run.accuracy === null ? undefined : `${run.accuracy.toFixed(3)} (policy version ${run.accuracyVersion})`,
    ],
    ['cost', run.usd === undefined ? undefined : `${showUsd(run.usd)} of bought instances`],
    ['checkpoint', checkpointText(run)],
    ['numerics', profileText(run)],
    ['changed', showMoment(new Date(run.changedAt), now)],
    ['store', run.store],
  ];
}

/** Code, text, and what to do: a poison job or a faulty worker is named here. */
export function reasonText(reason: NonNullable<RunStatus['reason']>): string {
  const lines = [`${reason.code}: ${reason.message}`];
  if (reason.where !== undefined) lines.push(`at ${reason.where}`);
  if (reason.hint !== undefined) lines.push(`hint: ${reason.hint}`);
  return lines.join('\n');
}

/** `rollout 37 %`. */
export function doingText({ stage, progress }: Pick<RunStatus, 'stage' | 'progress'>): string | undefined {
  return stage === undefined ? undefined : activityText(stage, progress);
}

function checkpointText({ latestCheckpoint, retentionFloor }: RunStatus): string {
  if (latestCheckpoint === null) return 'none yet';
  return `iteration ${latestCheckpoint.iteration}${retentionFloor === 0 ? '' : `; what came before ${retentionFloor} is removed by retention`}`;
}

function profileText({ profile }: RunStatus): string | undefined {
  if (profile === null) return undefined;
  return `${profile.compute}${profile.deterministic ? ', deterministic' : ''}, ${profile.engine} on ${profile.device}`;
}

export function workerTable(workers: readonly WorkerStatus[], printer: Printer): string {
  const columns = [
    { head: 'worker', value: (worker: WorkerStatus) => worker.worker },
    {
      head: 'state',
      value: (worker: WorkerStatus) =>
        worker.state === 'unhealthy' ? printer.style('red', 'UNHEALTHY') : worker.state,
    },
    { head: 'roles', value: (worker: WorkerStatus) => worker.roles.join(' '), spare: 3 },
    { head: 'works for', value: leaseText },
    { head: 'jobs', value: (worker: WorkerStatus) => worker.jobs.length, spare: 2 },
    { head: 'tokens/s', value: rateText, right: true, spare: 1 },
    { head: 'round trip', value: roundTripText, right: true, spare: 1 },
    { head: 'last error', value: troubleText, shrink: true },
  ].filter(
    ({ head }) =>
      (head !== 'last error' || workers.some(({ lastError }) => lastError !== undefined)) &&
      (head !== 'tokens/s' || workers.some(({ tokensPerSecond }) => tokensPerSecond !== undefined)) &&
      (head !== 'round trip' || workers.some(({ roundTripMs }) => reachOf(roundTripMs) !== 'loopback')),
  );
  return [
    renderTable(workers, columns, widthFor(printer.stdout)),
    ...workers.flatMap(lackTexts),
    ...workers.flatMap(refusedTexts),
  ].join('\n');
}

const roundTripText = ({ roundTripMs }: WorkerStatus): string | undefined =>
  roundTripMs === undefined ? undefined : `${showNumber(roundTripMs)} ms`;

/** The run, and its components where the worker does not train all of them. */
function leaseText({ lease, trains, standsBy }: WorkerStatus): string | undefined {
  if (lease === undefined) return undefined;
  return `${lease}${trains === undefined ? '' : `: ${trains.join(' ')}`}${standsBy ? ' (standby)' : ''}`;
}

/** One line for each thing that a worker lacks: `gpu-2 refuses jobs that need the variable KEY: …`. */
function lackTexts({ worker, state, lacks = [] }: WorkerStatus): string[] {
  const refused = (what: string) => (state === 'unhealthy' ? 'refuses all jobs' : `refuses jobs that need ${what}`);
  return lacks.map(({ what, error: { code, message, hint } }) =>
    [`${worker} ${refused(what)}: ${code}: ${message}`, ...(hint === undefined ? [] : [`hint: ${hint}`])].join('\n'),
  );
}

/** One line for each compute type in which an engine of the worker gives other bits than its profile names. */
function refusedTexts({ worker, engines }: WorkerStatus): string[] {
  const refused = engines.flatMap(({ proofs = [] }) => proofs).filter(({ state }) => state === 'refused');
  return refused.map((proof) => [`${worker}: ${refusedText(proof)}`, `hint: ${refusedHint}`].join('\n'));
}

function troubleText({ lastError, failuresInARow }: WorkerStatus): string | undefined {
  if (lastError === undefined) return undefined;
  const often = failuresInARow > 1 ? ` (${failuresInARow} in a row)` : '';
  return `${lastError.code}: ${lastError.message.split('\n')[0]}${often}`;
}
