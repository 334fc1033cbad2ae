/** The thread behind `startWorker`. */
import { parentPort, workerData } from 'node:worker_threads';
import { request } from './generation.ts';
import { createGenerator } from '../index.ts';
import type { WorkerTask } from './busy-worker.ts';
import { batchOf, decoder, trainerOf } from './decoders.ts';
import { randomWork } from './random-work.ts';

const { work, seed, inside } = workerData as WorkerTask;
const config = decoder({ hidden: 128, ffn: 384, heads: 8, kvHeads: 4, headDim: 16, vocab: 500 });

/** Says that the thread is inside the engine. A thread that is ended there never says that it has left. */
function computing<T>(call: () => T): T {
  Atomics.store(inside, 0, 1);
  const result = call();
  Atomics.store(inside, 0, 0);
  return result;
}

function trainForEver(): never {
  const trainer = trainerOf(config, seed, { threads: 2 });
  const batch = batchOf(config, [400, 300, 300], seed);
  for (;;) {
    const {
      handle,
      outputs: { logProbs: logProbs_P },
    } = computing(() => trainer.forward(batch, { temperature: 1, wants: ['logProbs'], keep: true }));
    computing(() => trainer.backward(handle, { logProbs: logProbs_P }));
    computing(() => trainer.step({ lr: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, maxGradNorm: 1 }));
  }
}

function generateForEver(): never {
  const generator = createGenerator(trainerOf(config, seed, { threads: 2 }), { maxSeqs: 32, maxModelLen: 400 });
  const prompt = Array.from({ length: 200 }, (_, i) => (i * seed) % config.vocab);
  for (let key = 1; ; key += 32) {
    generator.submit(request(prompt, key, 32, { maxNewTokens: 200 }));
    for (let steps = 0; steps < 20; steps++) computing(() => generator.step());
    for (let i = 0; i < 32; i++) generator.abort(key + i);
  }
}

if (work === 'train') trainForEver();
if (work === 'generate') generateForEver();
parentPort?.postMessage(
  [0, 1, 2].map((i) => randomWork(seed + i, { compute: 'fp32', deterministic: true, threads: 2 })),
);
