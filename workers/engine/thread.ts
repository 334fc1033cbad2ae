/** The engine's own thread. All heavy work of a worker happens here; the main thread only handles messages. */
import { parentPort, workerData } from 'node:worker_threads';
import { PreemptedError, RetryableError, thrownToJson } from '../../core/errors.ts';
import type { Stage, StageTypes } from '../../core/wire/jobs.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import { needRecord } from '../../infra/store/records.ts';
import { batchRecord } from '../../core/records/schema.ts';
import { keys } from '../../core/records/keys.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { advantage } from './advantage.ts';
import { compare } from './compare.ts';
import { EngineHost } from './host.ts';
import type { JobContext } from './host.ts';
import type { EngineThreadData, FromEngine, ToEngine } from './protocol.ts';
import { rollout } from './rollout.ts';
import { StageTimer } from './stage-timer.ts';
import type { RunState } from './state.ts';
import { applyBatch } from './update.ts';

type EngineStage = Exclude<Stage, 'reward'>;
type StageFunctions = {
  readonly [S in EngineStage]: (
    host: EngineHost,
    input: StageTypes[S]['input'],
    context: JobContext,
  ) => Promise<StageTypes[S]['output']>;
};

const stages: StageFunctions = {
  open: (host, input, context) => host.open(input, context),
  rollout,
  advantage,
  compare,
  update: async (host, input, context) => {
    const log = await host.log(context);
    const record = await needRecord(
      log.store,
      keys.batch(context.runId, context.at.term, context.at.iteration + 1),
      batchRecord,
    );
    if (record.digest !== input.batch)
      throw new RetryableError('StaleJob', `${record.key} has digest ${record.digest}, the job names ${input.batch}`);
    const tensors = decodeBatch(await getBlob(log.store, context.runId, record.record.tensors), record.key);
    const state = await host.stateAt(context, input, input.parentState);
    await host.interruptPolicy();
    if (input.save) host.prepareCheckpoint(state);
    const timer = new StageTimer(context);
    const output = await timer.time('timing_s/update_actor', () =>
      applyBatch(state, record.record, tensors, {
        tick: (done, total) => context.progress(done, total, 'training'),
        signal: context.signal,
        ownLoss: host.own.lossIn(log.store),
      }),
    );
    host.standsAt(context, context.at.iteration + 1);
    if (input.save)
      await timer.time('timing_s/save_checkpoint', () => saveBeside(host, state, context, context.at.iteration + 1));
    context.count('actor/perf/cpu_memory_used_gb', process.memoryUsage.rss() / 2 ** 30);
    return output;
  },
  checkpoint: async (host, input, context) => {
    const saved = await host.savedCheckpoint(context, input.state);
    if (saved !== undefined) return { manifest: saved };
    const state = await host.stateAt(context, input, input.state);
    const { written } = await host.checkpoint(state, context, context.at.iteration);
    return { manifest: await written };
  },
  weights: async (host, input, context) => {
    const state = await host.stateAt(context, input, input.state);
    return { manifest: await host.publishWeights(state, context) };
  },
};

/**
 * Resolves when the state is copied; the copy is written while the next stages run. A failed save is reported, and the
 * next save is due soon.
 */
async function saveBeside(host: EngineHost, state: RunState, context: JobContext, iteration: number): Promise<void> {
  const startedAt = performance.now();
  const { written } = await host.checkpoint(state, context, iteration);
  written.then(
    () => context.say(`checkpoint ${iteration} saved in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`),
    (error: unknown) => context.say(`checkpoint ${iteration} could not be saved: ${String(error)}`),
  );
}

const port = parentPort;
if (port === null) throw new Error('workers/engine/thread.ts runs as a worker thread');
const data = workerData as EngineThreadData;
const ticks = new Int32Array(data.ticks);
const tell = (message: FromEngine) => port.postMessage(message);
const host = new EngineHost({
  threads: data.threads,
  cache: data.cache,
  onSaved: (ms) => tell({ type: 'saved', ms }),
  ticks,
});
/** Aborts the calls of a job to its engine, by the job's id. */
const cancels = new Map<number, () => void>();
/** Callbacks of journal writers for lost entries. */
const onLost = new Set<() => void>();
/** Trainer stages run one after the other; rollouts run in parallel. */
let trainerTurn: Promise<unknown> = Promise.resolve();

port.on('message', (message: ToEngine) => {
  switch (message.type) {
    case 'release':
      return void host.release(message.runId);
    case 'close':
      return port.close();
    case 'cancel':
      return cancels.get(message.id)?.();
    case 'journal-lost':
      return onLost.forEach((listener) => listener());
    case 'abandon':
      return void host.abandon(message.runId);
    case 'hand-back':
      return void host.requeue(message.because);
    case 'save-last':
      return void (trainerTurn = trainerTurn.then(() => saveLast(message.inTime)));
    case 'job':
      if (message.message.stage === 'rollout') return void serve(message);
      trainerTurn = trainerTurn.then(() => serve(message));
  }
});
tell({ type: 'ready', facts: host.facts });

async function saveLast(inTime: boolean): Promise<void> {
  try {
    tell({ type: 'saved-last', ...(await host.saveLast(inTime)) });
  } catch (error) {
    tell({ type: 'saved-last', text: `the last state could not be saved: ${String(error)}` });
  }
}

async function serve(job: Extract<ToEngine, { type: 'job' }>): Promise<void> {
  const { id, message } = job;
  const started = performance.now();
  const counts: Record<string, number> = {};
  const unneeded = new AbortController();
  cancels.set(id, () => unneeded.abort(cancelledError(message.runId)));
  try {
    const context = contextOf(job, counts, unneeded.signal);
    context.throwIfCancelled();
    const output = await runStage(message, context);
    tell({ type: 'done', id, output: { ...output }, seconds: (performance.now() - started) / 1000, counts });
  } catch (error) {
    tell({ type: 'failed', id, thrown: thrownToJson(error) });
  } finally {
    cancels.delete(id);
  }
}

const cancelledError = (runId: string) => new PreemptedError('Cancelled', `${runId} has ended`);

function runStage(message: JobMessage, context: JobContext): Promise<StageTypes[EngineStage]['output']> {
  if (message.stage === 'reward') throw new Error('rewards are scored in processes of their own');
  // The stage and its input travel together in one message; TypeScript cannot see that they match.
  const stage = stages[message.stage] as (
    host: EngineHost,
    input: unknown,
    context: JobContext,
  ) => Promise<StageTypes[EngineStage]['output']>;
  return stage(host, message.input, context);
}

function contextOf(
  { id, message, journal: entries, cancelled }: Extract<ToEngine, { type: 'job' }>,
  counts: Record<string, number>,
  signal: AbortSignal,
): JobContext {
  let told = 0;
  const throwIfCancelled = () => {
    if (Atomics.load(cancelled, 0) !== 0) throw cancelledError(message.runId);
  };
  return {
    runId: message.runId,
    jobId: message.jobId,
    at: message.at,
    store: message.store,
    signal,
    throwIfCancelled,
    progress: (done, total, note) => {
      // Samples of several jobs are decoded together; `abandon` removes those of a cancelled run.
      if (message.stage !== 'rollout') throwIfCancelled();
      Atomics.add(ticks, 0, 1);
      faultPoint('job.progress', { stage: message.stage, iteration: message.at.iteration, runId: message.runId });
      const now = performance.now();
      if (now - told < 100) return;
      told = now;
      tell({ type: 'progress', id, done, total, note });
    },
    say: (text) => tell({ type: 'say', id, text }),
    ended: (samples) => message.scoring !== undefined && tell({ type: 'ended', id, samples }),
    count: (name, value) => void (counts[name] = value),
    journal: {
      entries,
      incarnation: data.incarnation,
      tickMs: data.journalMs,
      now: () => performance.now(),
      publish: (text, tokens) => tell({ type: 'journal', id, text, tokens }),
      onLost: (listener) => {
        onLost.add(listener);
        return () => onLost.delete(listener);
      },
    },
  };
}
