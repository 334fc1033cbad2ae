/**
 * The thread of a classifier in ONNX. ONNX Runtime computes in the thread that calls it, so this one does nothing else.
 * classifier.ts starts it.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { ClassifierThreadData, FromClassifier, PaddedBatch, TensorFacts } from './protocol.ts';

const port = parentPort;
if (port === null) throw new Error('infra/onnx/classifier-thread.ts runs as a worker thread');
const tell = (message: FromClassifier) => port.postMessage(message);
const tellFailure = (error: unknown) =>
  tell({ type: 'failed', reason: error instanceof Error ? error.message : String(error) });

try {
  const session = await openSession(workerData as ClassifierThreadData);
  port.on('message', (batch: PaddedBatch) => {
    score(session, batch).then(tell, tellFailure);
  });
  const { inputMetadata, outputMetadata } = session;
  tell({ type: 'ready', facts: { inputs: inputMetadata.map(factsOf), outputs: outputMetadata.map(factsOf) } });
} catch (error) {
  tellFailure(error);
}

function openSession({ path, threads }: ClassifierThreadData): Promise<InferenceSession> {
  return InferenceSession.create(path, {
    executionProviders: ['cpu'],
    executionMode: 'sequential',
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Batches have many shapes: the arena would keep the memory of the largest, and a pattern fits only one shape.
    enableCpuMemArena: false,
    enableMemPattern: false,
    logSeverityLevel: 3,
    // Threads that wait would otherwise take the processor from the sampling beside them.
    extra: { session: { intra_op: { allow_spinning: '0' } } },
  });
}

function factsOf(value: InferenceSession.ValueMetadata): TensorFacts {
  return value.isTensor
    ? { name: value.name, type: value.type, shape: value.shape }
    : { name: value.name, type: undefined, shape: [] };
}

async function score(session: InferenceSession, batch: PaddedBatch): Promise<FromClassifier> {
  const { length, tokens_RL, lengths_R, output } = batch;
  const shape = [lengths_R.length, length];
  const tokens = BigInt64Array.from(tokens_RL, BigInt);
  const mask = new BigInt64Array(tokens.length);
  lengths_R.forEach((own, row) => mask.fill(1n, row * length, row * length + own));
  const given = {
    input_ids: new Tensor('int64', tokens, shape),
    attention_mask: new Tensor('int64', mask, shape),
  };
  const { [output]: found } = await session.run(given, [output]);
  if (found?.type !== 'float32') throw new Error(`${output} is ${found?.type ?? 'missing'}, not float32`);
  return { type: 'scores', scores_R: Float32Array.from(found.data as Float32Array), shape: found.dims };
}
