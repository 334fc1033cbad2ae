/**
 * pause, stop, cancel and resume: the desired state is recorded in the store first, then the run's workflow is told.
 * When the workflow cannot be told, the control process does it later (workers/control/reconcile-runs.ts).
 */
import { RetryableError, TerminalError } from '../../core/errors.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import type { DesiredState, RunState } from '../../core/run-states.ts';
import { stackName } from '../../infra/stack/index.ts';
import { appendStatus } from '../../log/run/status.ts';
import type { ApiContext } from '../context.ts';
import { driverIfUp } from './driver.ts';
import type { RunDriver } from './driver.ts';
import type { FoundRun } from '../stores/find.ts';
import type { TermRequest } from './next-term.ts';
import { endedStates } from '../../core/run-states.ts';

/** The result of telling a run's workflow the desired state. */
export interface Told {
  readonly met: RequestAnswer;
  /** The name of the other stack, for `elsewhere`. */
  readonly owner?: string;
}

/**
 * `told`: the workflow knows it. `nobody`: no workflow drives the run. `stack-down`: Temporal does not answer; the
 * control process tells the workflow when everything is up. `elsewhere`: another stack drives the run; its control
 * process does.
 */
export type RequestAnswer = 'told' | 'nobody' | 'stack-down' | 'elsewhere';

export interface Requested extends Told {
  /** The run's entry with the desired state; for `waitUntilEnd`. */
  readonly entry: StatusEntry;
  /** The state of the run now. */
  readonly state: RunState;
}

/**
 * Asks a run to pause, stop or cancel. When this returns, the run will do so, even if the stack is down or another
 * stack drives it. Throws TerminalError `Conflict` for a run that has ended.
 */
export async function requestRunState(
  run: FoundRun,
  desired: Exclude<DesiredState, 'run'>,
  { home }: Pick<ApiContext, 'home'>,
): Promise<Requested> {
  const entry = await recordDesiredState(run, desired, new Date());
  const driver = await driverIfUp(run, home);
  try {
    const told = await tellWorkflow(run, desired, driver, stackName(home));
    if (told.met === 'nobody') {
      // Only a workflow can write the checkpoint of a stop. It reads the position and the desired state from the store.
      if (desired === 'stop') await driver?.start(false);
      else await recordReached(run, desired, new Date());
    }
    return { ...told, entry, state: (await run.log.status.newest())?.state ?? 'queued' };
  } finally {
    await driver?.close();
  }
}

/**
 * Records the desired state in the store. When this returns, the run will reach that state. Throws TerminalError
 * `Conflict` for a run that has ended.
 */
export async function recordDesiredState(
  run: FoundRun,
  desired: Exclude<DesiredState, 'run'>,
  now: Date,
): Promise<StatusEntry> {
  refuseIfEnded(run, await run.log.status.newest(), desired);
  return appendStatus(run.log, { wish: desired }, now);
}

/**
 * Tells the workflow the recorded desired state, so that it does not have to find it in the store. `here`: the name of
 * this stack.
 */
export async function tellWorkflow(
  run: FoundRun,
  desired: Exclude<DesiredState, 'run'>,
  driver: RunDriver | undefined,
  here: string,
): Promise<Told> {
  const owner = (await run.log.newestTerm())?.record.owner ?? here;
  if (owner !== here) return { met: 'elsewhere', owner };
  if (driver === undefined) return { met: 'stack-down' };
  try {
    return { met: (await driver.signal(desired)) ? 'told' : 'nobody' };
  } catch (error) {
    if (error instanceof RetryableError) return { met: 'stack-down' };
    throw error;
  }
}

/** Records that a run without a workflow is cancelled or paused. Nothing needs to be computed for that. */
async function recordReached(run: FoundRun, desired: 'cancel' | 'pause', now: Date): Promise<StatusEntry> {
  return appendStatus(run.log, { state: desired === 'cancel' ? 'cancelled' : 'paused' }, now);
}

/**
 * Starts the workflow of a run, or joins the running one. A run that had ended is queued again first, so that its old
 * end is not taken for a new one. The note is written before that, so that the run starts even when this process dies
 * in between. Call `refuseResume` first.
 */
export async function resume(run: FoundRun, driver: RunDriver, now: Date): Promise<StatusEntry> {
  const before = await run.log.status.newest();
  const ended = before !== undefined && endedStates.has(before.state);
  if (ended) await driver.noteToStart();
  const entry = await appendStatus(run.log, { wish: 'run', ...(ended ? { state: 'queued' as const } : {}) }, now);
  await driver.start(ended);
  await driver.signal('run');
  return entry;
}

/**
 * Throws TerminalError `Conflict` for a completed run without --from or changes, and for a cancelled run without
 * --from.
 */
export function refuseResume(
  { runId }: FoundRun,
  status: StatusEntry | undefined,
  { from, changed }: Pick<TermRequest, 'from' | 'changed'>,
): void {
  if (status?.state === 'completed' && from === undefined && changed === undefined) {
    throw new TerminalError('Conflict', `${runId} is completed: all its iterations are done`, {
      hint: `to train further, name the new end: petrel resume ${runId} trainer.total_training_steps=…`,
    });
  }
  if (status?.state === 'cancelled' && from === undefined) {
    throw new TerminalError(
      'Conflict',
      `${runId} was cancelled: it can only continue from an iteration that you name`,
      {
        hint: `petrel resume ${runId} --from <k>`,
      },
    );
  }
}

/** Throws TerminalError `Conflict` for a run that has ended. */
export function refuseIfEnded(
  { runId }: FoundRun,
  status: StatusEntry | undefined,
  desired: Exclude<DesiredState, 'run'>,
): void {
  if (status === undefined || !endedStates.has(status.state)) return;
  const { state } = status;
  const hint =
    state === 'completed' || state === 'cancelled'
      ? `to delete it: petrel rm ${runId}`
      : `to continue it: petrel resume ${runId}`;
  throw new TerminalError('Conflict', `${runId} is ${state}: there is nothing to ${desired}`, { hint });
}
