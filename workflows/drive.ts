/**
 * Drives one run: recover from the store, iterate, obey wishes at boundaries, pause with the reason when a person must
 * act. The run's kinds differ only in what one iteration does.
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
import type { Wish } from '../core/records/schema.ts';
import { liveQueryName, outOfDateType, pauseType, wishSignalName } from '../core/wire/workflow.ts';
import type { LiveState, RunCarry, RunOutcome } from '../core/wire/workflow.ts';
import { Abandonable } from './abandonable.ts';
import { RunProgress } from './run-state.ts';

/** Reads and small writes of the store. */
export const quick = proxyActivities<Activities>({
  startToCloseTimeout: '60 s',
  retry: { initialInterval: '200 ms', maximumInterval: '5 s' },
});
/** Stages wait for workers as long as it takes; the heartbeat says that the waiter lives. */
export const stages = proxyActivities<Activities>({
  startToCloseTimeout: '30 days',
  heartbeatTimeout: '3 s',
  retry: { initialInterval: '200 ms', maximumInterval: '5 s' },
});

/** Which run, and where this workflow believes its log to end: a stage refuses to work for another position. */
export type RunAt = RunCarry & { readonly position: number };

/** What one iteration does, up to its committed batch. */
export type MakeBatch = (run: RunAt, at: (stage: string) => void) => Promise<void>;

/** What the parts of one workflow share. */
interface Drive {
  readonly carry: RunCarry;
  readonly progress: RunProgress;
  readonly abandonable: Abandonable;
  readonly makeBatch: MakeBatch;
}

/**
 * Iterations that one execution of the workflow drives before it continues as new: long before the server asks for it, so
 * that every run of some length takes this way, and a replay is short.
 */
const iterationsPerExecution = 50;

/** Wishes that end the run. */
const ends: readonly Wish[] = ['stop', 'cancel'];

export async function driveRun(carry: RunCarry, makeBatch: MakeBatch): Promise<RunOutcome> {
  const drive: Drive = { carry, progress: new RunProgress(), abandonable: new Abandonable(), makeBatch };
  setHandler(defineQuery<LiveState>(liveQueryName), () => drive.progress.live());
  setHandler(defineSignal<[Wish]>(wishSignalName), (wish) => {
    drive.progress.wish = wish;
    drive.abandonable.tell(wish);
  });

  while (!historyIsLong(drive.progress)) {
    const outcome = await untilPausedOrDone(drive);
    if (outcome !== undefined) return outcome;
  }
  // Nothing is lost here: wishes stand in the store before their signals are sent, and a signal that comes in meanwhile
  // makes the server refuse this end, so that the handler sees it first.
  return continueAsNew<(carry: RunCarry) => Promise<RunOutcome>>(carry);
}

const historyIsLong = ({ driven }: RunProgress) =>
  driven >= iterationsPerExecution || workflowInfo().continueAsNewSuggested;

/** undefined when there is more to do: after a pause, or because the history is long. */
async function untilPausedOrDone(drive: Drive): Promise<RunOutcome | undefined> {
  try {
    return await iterate(drive);
  } catch (error) {
    if (isOutOfDate(error)) return undefined;
    const reason = pauseReason(error);
    if (reason === undefined) return await fail(drive, error);
    // Nothing needs to be mended for a run that is given up.
    if (drive.progress.wish === 'cancel') return await end(drive, 'cancelled');
    await hold(drive, reason);
    return undefined;
  }
}

async function iterate(drive: Drive): Promise<RunOutcome | undefined> {
  const { carry, progress } = drive;
  const before = progress.wish;
  const head = await quick.recoverHead(carry);
  Object.assign(progress, { opened: head.term > 0, position: head.position, iterations: head.iterations });
  // The store's word may be older than a signal that came in meanwhile.
  if (progress.wish === before) progress.wish = head.wish;
  // A run that was paused before its workflow was lost stays so, with its reason; nothing is done before it may go on.
  if (progress.opened && progress.turn() === 'hold') {
    await hold(drive, undefined);
    return undefined;
  }
  if (progress.ending === undefined) await open(drive);
  if (progress.ending === undefined && head.evaluationDue) await validate(drive);
  if (head.valOnly && progress.ending === undefined) return end(drive, 'completed');
  if (head.pending && progress.wish !== 'cancel') await update(drive);

  while (!historyIsLong(progress)) {
    const turn = progress.turn();
    if (turn === 'hold') {
      await hold(drive, undefined);
      // The owner may have opened a new term meanwhile, with another recipe or from an earlier position.
      if (progress.ending === undefined) return undefined;
    } else if (turn === 'go') {
      if ((await makeBatch(drive)) && progress.wish !== 'cancel') await update(drive);
    } else return end(drive, turn === 'complete' ? 'completed' : turn === 'stop' ? 'stopped' : 'cancelled');
  }
  return undefined;
}

/** A run is queued until a trainer has its base ready. */
async function open(drive: Drive): Promise<void> {
  const { carry, progress, abandonable } = drive;
  if (!progress.opened) {
    progress.stage = 'open';
    progress.opened = await abandonable.run(ends, async () => void (await stages.openTerm(carry)));
  }
  if (progress.opened) await running(drive);
}

async function running({ carry, progress }: Drive): Promise<void> {
  await quick.recordState({ ...carry, state: 'running' });
  progress.state = 'running';
}

/** False when there is no batch to apply: a stop or cancel need not wait for responses, but what is committed is finished. */
async function makeBatch({ carry, progress, abandonable, makeBatch }: Drive): Promise<boolean> {
  if (
    await abandonable.run(ends, () =>
      makeBatch({ ...carry, position: progress.position }, (stage) => (progress.stage = stage)),
    )
  )
    return true;
  return progress.wish === 'stop' && (await quick.recoverHead(carry)).pending;
}

async function update(drive: Drive): Promise<void> {
  const { carry, progress, abandonable } = drive;
  progress.stage = 'update';
  const before = progress.wish;
  let evaluationDue = false;
  await abandonable.run(['cancel'], async () => {
    const done = await stages.update({ ...carry, position: progress.position });
    progress.position = done.position;
    progress.driven += 1;
    // The store's word may be older than a signal that came in meanwhile.
    if (progress.wish === before) progress.wish = done.wish;
    evaluationDue = done.evaluationDue;
  });
  if (evaluationDue && progress.ending === undefined) await validate(drive);
}

/** One that is abandoned is due again when the run goes on. */
async function validate({ carry, progress, abandonable }: Drive): Promise<void> {
  progress.stage = 'evaluate';
  await abandonable.run(ends, async () => void (await stages.evaluate({ ...carry, position: progress.position })));
}

/** Processes stay; the workflow waits for another wish. With a reason also for one to stop, told anew: what stops it cannot be done now. */
async function hold({ carry, progress }: Drive, reason: unknown): Promise<void> {
  if (progress.wish === 'run' || reason !== undefined) progress.wish = 'pause';
  progress.state = 'paused';
  progress.stage = 'paused';
  const wish = await quick.recordState({ ...carry, state: 'paused', ...(reason === undefined ? {} : { reason }) });
  // The owner may wish otherwise since, and the signal of it be lost. What stops the run must be wished anew. (Older histories have no answer.)
  if (reason === undefined && wish !== undefined && progress.wish === 'pause') progress.wish = wish;
  await condition(() => progress.wish !== 'pause');
}

/** The final state of a run is always a checkpoint, but a cancelled one leaves its log where it is. */
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

/** This workflow was rolled back, or its history tells of another past than the log: where the run is stands in the store. */
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
