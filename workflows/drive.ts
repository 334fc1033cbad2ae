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
import { liveQueryName, pauseType, wishSignalName } from '../core/wire/workflow.ts';
import type { LiveState, RunCarry, RunOutcome } from '../core/wire/workflow.ts';
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

/** What one iteration does, up to its committed batch. */
export type MakeBatch = (carry: RunCarry, at: (stage: string) => void) => Promise<void>;

export async function driveRun(carry: RunCarry, makeBatch: MakeBatch): Promise<RunOutcome> {
  const progress = new RunProgress();
  let abandon: CancellationScope | undefined;
  setHandler(defineQuery<LiveState>(liveQueryName), () => progress.live());
  setHandler(defineSignal<[Wish]>(wishSignalName), (wish) => {
    progress.wish = wish;
    if (wish === 'stop' || wish === 'cancel') abandon?.cancel();
  });

  for (;;) {
    try {
      return await iterate(carry, progress, makeBatch, (scope) => (abandon = scope));
    } catch (error) {
      const reason = pauseReason(error);
      if (reason === undefined) return await fail(carry, progress, error);
      await hold(carry, progress, reason);
    }
  }
}

async function iterate(carry: RunCarry, progress: RunProgress, makeBatch: MakeBatch, abandonable: (scope: CancellationScope | undefined) => void): Promise<RunOutcome> {
  const head = await quick.recoverHead(carry);
  Object.assign(progress, { position: head.position, iterations: head.iterations, wish: head.wish });
  await quick.recordState({ ...carry, state: 'running' });
  progress.state = 'running';
  if (head.term === 0) {
    progress.stage = 'open';
    await stages.openTerm(carry);
  }
  if (head.position === 0 && head.evaluateFirst) await validate(carry, progress);
  if (head.valOnly) return end(carry, progress, 'completed');
  if (head.pending) await update(carry, progress);

  for (;;) {
    const turn = progress.turn();
    if (turn === 'hold') {
      await hold(carry, progress, undefined);
      await quick.recordState({ ...carry, state: 'running' });
      progress.state = 'running';
      continue;
    }
    if (turn !== 'go') return end(carry, progress, turn === 'complete' ? 'completed' : turn === 'stop' ? 'stopped' : 'cancelled');
    const batchMade = await abandonableBatch(carry, progress, makeBatch, abandonable);
    if (batchMade && progress.wish !== 'cancel') await update(carry, progress);
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<(carry: RunCarry) => Promise<RunOutcome>>(carry);
  }
}

/** A stop or cancel need not wait for responses that nothing has committed yet. False when abandoned. */
async function abandonableBatch(carry: RunCarry, progress: RunProgress, makeBatch: MakeBatch, abandonable: (scope: CancellationScope | undefined) => void): Promise<boolean> {
  try {
    await CancellationScope.cancellable(async () => {
      abandonable(CancellationScope.current());
      await makeBatch(carry, (stage) => (progress.stage = stage));
    });
    return true;
  } catch (error) {
    if (isCancellation(error) && progress.wish !== 'run') return false;
    throw error;
  } finally {
    abandonable(undefined);
  }
}

async function update(carry: RunCarry, progress: RunProgress): Promise<void> {
  progress.stage = 'update';
  const done = await stages.update(carry);
  progress.position = done.position;
  progress.wish = done.wish;
  if (done.evaluationDue) await validate(carry, progress);
}

async function validate(carry: RunCarry, progress: RunProgress): Promise<void> {
  progress.stage = 'evaluate';
  await stages.evaluate(carry);
}

/** Processes stay; the workflow waits for another wish. */
async function hold(carry: RunCarry, progress: RunProgress, reason: unknown): Promise<void> {
  if (reason !== undefined) progress.wish = 'pause';
  progress.state = 'paused';
  progress.stage = 'paused';
  await quick.recordState({ ...carry, state: 'paused', ...(reason === undefined ? {} : { reason }) });
  await condition(() => progress.wish !== 'pause');
}

/** The final state of a run is always a checkpoint, but a cancelled one leaves its log where it is. */
async function end(carry: RunCarry, progress: RunProgress, state: 'completed' | 'stopped' | 'cancelled'): Promise<RunOutcome> {
  if (state !== 'cancelled') {
    progress.stage = 'checkpoint';
    await stages.checkpoint(carry);
  }
  await quick.recordState({ ...carry, state });
  progress.state = state;
  return { state, position: progress.position };
}

async function fail(carry: RunCarry, progress: RunProgress, error: unknown): Promise<RunOutcome> {
  if (isCancellation(error)) {
    await CancellationScope.nonCancellable(() => quick.recordState({ ...carry, state: 'cancelled' }));
    throw error;
  }
  await quick.recordState({ ...carry, state: 'failed', reason: reasonOf(error) });
  progress.state = 'failed';
  throw ApplicationFailure.nonRetryable(reasonOf(error).message, reasonOf(error).code);
}

function pauseReason(error: unknown): unknown {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  return cause instanceof ApplicationFailure && cause.type === pauseType ? (cause.details?.[0] ?? { code: pauseType, message: cause.message }) : undefined;
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
