/**
 * The workflow that drives one run. It reads the run's position from the store, runs iterations, and at each boundary
 * between stages carries out the user's desired state: continue, pause, stop or cancel. When an activity fails with an
 * error that a person must fix, it pauses the run and records the reason.
 *
 * The desired state is a record in the store. The workflow learns it in three ways: `recoverHead` and `update` return
 * it; a signal delivers it at once; and the control process repeats the signal while the workflow does not know the
 * state (workers/control/reconcile-runs.ts). So a lost signal costs only a short delay, and the workflow needs no
 * timer.
 */
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  isCancellation,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { DesiredState } from '../core/run-states.ts';
import { liveQueryName, outOfDateType, pauseType, desiredStateSignal } from '../core/wire/workflow.ts';
import type { LiveState, RunCarry, RunOutcome } from '../core/wire/workflow.ts';
import { Abandonable } from './abandonable.ts';
import { RunProgress } from './run-state.ts';

/** Reads and small writes of the store. */
const quick = proxyActivities<Activities>({
  startToCloseTimeout: '60 s',
  retry: { initialInterval: '200 ms', maximumInterval: '5 s' },
});
/** A stage waits for workers without a limit. Missing heartbeats tell Temporal that the control process died. */
export const stages = proxyActivities<Activities>({
  startToCloseTimeout: '30 days',
  heartbeatTimeout: '3 s',
  retry: { initialInterval: '200 ms', maximumInterval: '5 s' },
});

/**
 * A run, and the position at which this workflow expects the log to end. A stage fails with `OutOfDate` if the log ends
 * elsewhere.
 */
export type RunAt = RunCarry & { readonly position: number };

/** Makes the batch of one iteration: all stages before the update. The kinds of runs differ only here. */
export type MakeBatch = (run: RunAt, at: (stage: string) => void) => Promise<void>;

/** What the functions of one workflow share. */
interface Drive {
  readonly carry: RunCarry;
  readonly progress: RunProgress;
  readonly abandonable: Abandonable;
  readonly makeBatch: MakeBatch;
}

/**
 * Iterations in one execution of the workflow; then it continues as new. The server would suggest it much later. This
 * way a replay stays short, and most runs continue as new, so that this path is well tested.
 */
const iterationsPerExecution = 50;

/** Desired states that end the run. */
const ends: readonly DesiredState[] = ['stop', 'cancel'];

export async function driveRun(carry: RunCarry, makeBatch: MakeBatch): Promise<RunOutcome> {
  const drive: Drive = { carry, progress: new RunProgress(), abandonable: new Abandonable(), makeBatch };
  setHandler(defineQuery<LiveState>(liveQueryName), () => drive.progress.live());
  setHandler(defineSignal<[DesiredState]>(desiredStateSignal), (desired) => {
    drive.progress.desired = desired;
    drive.abandonable.tell(desired);
  });

  while (!historyIsLong(drive.progress)) {
    const outcome = await untilPausedOrDone(drive);
    if (outcome !== undefined) return outcome;
  }
  // No signal is lost here. When one arrives during this workflow task, the server refuses to close the execution, and
  // the task runs again with the signal.
  return continueAsNew<(carry: RunCarry) => Promise<RunOutcome>>(carry);
}

const historyIsLong = ({ driven }: RunProgress) =>
  driven >= iterationsPerExecution || workflowInfo().continueAsNewSuggested;

/** Resolves with undefined when there is more to do: after a pause, or because the history is long. */
async function untilPausedOrDone(drive: Drive): Promise<RunOutcome | undefined> {
  try {
    return await iterate(drive);
  } catch (error) {
    if (isOutOfDate(error)) return undefined;
    const reason = pauseReason(error);
    if (reason === undefined) return await fail(drive, error);
    // A cancelled run does not need the person that the pause asks for.
    if (drive.progress.desired === 'cancel') return await end(drive, 'cancelled');
    await pauseUntilTold(drive, reason);
    return undefined;
  }
}

async function iterate(drive: Drive): Promise<RunOutcome | undefined> {
  const { carry, progress } = drive;
  const before = progress.desired;
  const head = await quick.recoverHead(carry);
  Object.assign(progress, { opened: head.term > 0, position: head.position, iterations: head.iterations });
  // A signal may have arrived while the activity read the store. The signal is newer.
  if (progress.desired === before) progress.desired = head.wish;
  // This workflow replaces a lost one whose run was paused: the run stays paused and keeps its reason.
  if (progress.opened && progress.turn() === 'pause') {
    await pauseUntilTold(drive, undefined);
    return undefined;
  }
  if (progress.ending === undefined) await open(drive);
  if (progress.ending === undefined && head.evaluationDue) await validate(drive);
  if (head.valOnly && progress.ending === undefined) return end(drive, 'completed');
  if (head.pending && progress.desired !== 'cancel') await update(drive);

  while (!historyIsLong(progress)) {
    const turn = progress.turn();
    if (turn === 'pause') {
      await pauseUntilTold(drive, undefined);
      // During the pause the user may have opened a new term, with a changed recipe or from an earlier position.
      if (progress.ending === undefined) return undefined;
    } else if (turn === 'go') {
      if ((await makeBatch(drive)) && progress.desired !== 'cancel') await update(drive);
    } else return end(drive, turn === 'complete' ? 'completed' : turn === 'stop' ? 'stopped' : 'cancelled');
  }
  return undefined;
}

/**
 * Waits until a trainer has loaded the base model and the first term is open. The run's state is `queued` until then.
 */
async function open(drive: Drive): Promise<void> {
  const { carry, progress, abandonable } = drive;
  if (!progress.opened) {
    progress.stage = 'open';
    progress.opened = await abandonable.run(ends, async () => void (await stages.openTerm(carry)));
  }
  if (progress.opened) await recordRunning(drive);
}

async function recordRunning({ carry, progress }: Drive): Promise<void> {
  await quick.recordState({ ...carry, state: 'running' });
  progress.state = 'running';
}

/**
 * Resolves with whether there is a batch to apply. A stop or a cancel abandons the batch while it is being made. When
 * the batch was committed just before a stop, its update still happens.
 */
async function makeBatch({ carry, progress, abandonable, makeBatch }: Drive): Promise<boolean> {
  if (
    await abandonable.run(ends, () =>
      makeBatch({ ...carry, position: progress.position }, (stage) => (progress.stage = stage)),
    )
  )
    return true;
  return progress.desired === 'stop' && (await quick.recoverHead(carry)).pending;
}

async function update(drive: Drive): Promise<void> {
  const { carry, progress, abandonable } = drive;
  progress.stage = 'update';
  const before = progress.desired;
  let evaluationDue = false;
  await abandonable.run(['cancel'], async () => {
    const done = await stages.update({ ...carry, position: progress.position });
    progress.position = done.position;
    progress.driven += 1;
    // As in `iterate`: a signal that arrived during the activity is newer.
    if (progress.desired === before) progress.desired = done.wish;
    evaluationDue = done.evaluationDue;
  });
  if (evaluationDue && progress.ending === undefined) await validate(drive);
}

/** A stop or a cancel abandons a validation. It is due again when the run is resumed. */
async function validate({ carry, progress, abandonable }: Drive): Promise<void> {
  progress.stage = 'evaluate';
  await abandonable.run(ends, async () => void (await stages.evaluate({ ...carry, position: progress.position })));
}

/**
 * Records the pause and waits until the desired state changes. With a `reason`, a person must act first. Then the
 * desired state becomes `pause` even if it was `stop`, because the stop has just failed for this reason.
 */
async function pauseUntilTold({ carry, progress }: Drive, reason: unknown): Promise<void> {
  if (progress.desired === 'run' || reason !== undefined) progress.desired = 'pause';
  progress.state = 'paused';
  progress.stage = 'paused';
  const desired = await quick.recordState({ ...carry, state: 'paused', ...(reason === undefined ? {} : { reason }) });
  // The user may have resumed or stopped the run before the pause was recorded. (Activities of old histories return
  // nothing.)
  if (reason === undefined && desired !== undefined && progress.desired === 'pause') progress.desired = desired;
  await condition(() => progress.desired !== 'pause');
}

/** Ends the run, with a checkpoint of its last state unless it is cancelled. */
async function end(
  { carry, progress, abandonable }: Drive,
  wanted: 'completed' | 'stopped' | 'cancelled',
): Promise<RunOutcome> {
  let state = wanted;
  if (state !== 'cancelled' && progress.opened) {
    progress.stage = 'checkpoint';
    if (
      !(await abandonable.run(
        ['cancel'],
        async () => void (await stages.checkpoint({ ...carry, position: progress.position })),
      ))
    )
      state = 'cancelled';
  }
  await quick.recordState({ ...carry, state });
  progress.state = state;
  return { state, position: progress.position };
}

async function fail({ carry, progress }: Drive, error: unknown): Promise<RunOutcome> {
  if (isCancellation(error)) {
    await CancellationScope.nonCancellable(() => quick.recordState({ ...carry, state: 'cancelled' }));
    throw error;
  }
  await quick.recordState({ ...carry, state: 'failed', reason: reasonOf(error) });
  progress.state = 'failed';
  throw ApplicationFailure.nonRetryable(reasonOf(error).message, reasonOf(error).code);
}

/**
 * The workflow's history and the log in the store disagree, for instance after an older Temporal database was restored.
 * The store is right: `driveRun` reads the position from it again.
 */
function isOutOfDate(error: unknown): boolean {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  return cause instanceof ApplicationFailure && cause.type === outOfDateType;
}

function pauseReason(error: unknown): unknown {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  return cause instanceof ApplicationFailure && cause.type === pauseType
    ? (cause.details?.[0] ?? { code: pauseType, message: cause.message })
    : undefined;
}

function reasonOf(error: unknown): { readonly code: string; readonly message: string } {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof ApplicationFailure) {
    const detail: unknown = cause.details?.[0];
    if (typeof detail === 'object' && detail !== null && 'code' in detail && 'message' in detail) {
      return detail as { code: string; message: string };
    }
    return { code: cause.type ?? 'Internal', message: cause.message };
  }
  return { code: 'Internal', message: error instanceof Error ? error.message : String(error) };
}
