/** The engine's own thread. All heavy work of a worker happens here; the main thread only handles messages. */
import { parentPort, workerData } from 'node:worker_threads';
import { PreemptedError, thrownToJson } from '../../../core/errors.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import { serveWeights } from '../weights/holder-server.ts';
import { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import type { EngineThreadData, FromEngine, ToEngine } from './protocol.ts';
import { runStage } from '../stages/stages.ts';

const port = parentPort;
if (port === null) throw new Error('workers/engine/process/thread.ts runs as a worker thread');
const data = workerData as EngineThreadData;
const ticks = new Int32Array(data.ticks);
const tell = (message: FromEngine) => port.postMessage(message);
const host = new EngineHost({
  threads: data.threads,
  cache: data.cache,
  onSaved: (ms) => tell({ type: 'saved', ms }),
  ticks,
  incarnation: data.incarnation,
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
      return void (message.components === undefined
        ? host.release(message.runId)
        : host.releasePart(message.runId, message.components));
    case 'close':
      return port.close();
    case 'cancel':
      return cancels.get(message.id)?.();
    case 'journal-lost':
      return onLost.forEach((listener) => listener());
    case 'new-weights':
      return void host
        .prefetch(message.committed, message.holders)
        .catch((error: unknown) => console.error(`the next job gets the weights: ${String(error)}`));
    case 'abandon':
      return void host
        .abandon(message.runId)
        .catch((error: unknown) => console.error(`${message.runId} is left: ${String(error)}`));
    case 'requeue':
      return void host.requeue(message.because);
    case 'save-last':
      return void (trainerTurn = trainerTurn.then(() => saveLast(message.inTime)));
    case 'job':
      if (message.weights !== undefined) host.trust(message.message.runId, message.weights.secret);
      if (message.message.stage === 'rollout') return void serve(message);
      trainerTurn = trainerTurn.then(() => serve(message));
  }
});
const serves = data.servesOn === undefined ? undefined : await served(data.servesOn);
tell({ type: 'ready', facts: host.facts, ...(serves !== undefined && { serves }) });

/** A process that cannot listen gives its weights to nobody: they are in the store, too. */
async function served(address: string): Promise<string | undefined> {
  try {
    return await serveWeights(address, {
      secretOf: (runId) => host.weightsSecretOf(runId),
      weightsOf: (runId, publication) => host.readableWeights(runId, publication),
    });
  } catch (error) {
    console.error(`this worker gives its weights to no other: ${String(error)}`);
    return undefined;
  }
}

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
    const output = await runStage(host, message, context);
    tell({ type: 'done', id, output: { ...output }, seconds: (performance.now() - started) / 1000, counts });
  } catch (error) {
    tell({ type: 'failed', id, thrown: thrownToJson(error) });
  } finally {
    cancels.delete(id);
  }
}

const cancelledError = (runId: string) => new PreemptedError('Cancelled', `${runId} has ended`);

function contextOf(
  { id, message, journal: entries, weights, cancelled }: Extract<ToEngine, { type: 'job' }>,
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
    publication: message.publication,
    batch: message.batch,
    holders: weights?.urls ?? [],
    throwIfCancelled,
    progress: (done, total, note) => {
      // Samples of several jobs are decoded together; `abandon` removes those of a cancelled run.
      if (message.stage !== 'rollout') throwIfCancelled();
      Atomics.add(ticks, 0, 1);
      const { stage, jobId, runId } = message;
      faultPoint('job.progress', { stage, jobId, runId, iteration: message.at.iteration });
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
