/**
 * `rounds-main.ts <rounds>`: creates engines, uses and disposes of them, and prints what the process holds after a
 * fifth of the rounds and after all: `{"residentMiB", "mappings", "threads"}`. Needs --expose-gc.
 */
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { createGenerator } from '../index.ts';
import { generate, request } from './generation.ts';
import { batchOf, decoder, trainerOf } from './decoders.ts';

export interface Held {
  readonly residentMiB: number;
  readonly mappings: number;
  readonly threads: number;
}

const config = decoder({ hidden: 48, ffn: 96, vocab: 257 });
const batch = batchOf(config, [9, 4], 1);

function round(seed: number): void {
  const trainer = trainerOf(config, seed, { threads: 1 + (seed % 2) });
  const {
    handle,
    outputs: { logProbs: logProbs_P },
  } = trainer.forward(batch, { temperature: 1, wants: ['logProbs'], keep: true });
  // Some rounds leave a forward pass that was kept, and samples that are live.
  if (seed % 3 !== 0) trainer.backward(handle, { logProbs: logProbs_P });
  trainer.step({ lr: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, maxGradNorm: 1 });
  const generator = createGenerator(trainer, { maxSeqs: 2, maxModelLen: 40 });
  if (seed % 5 === 0) generator.submit(request([1, 2, 3], 1, 4));
  else generate(generator, [request([1, 2, 3], 1, 2, { maxNewTokens: 3 })]);
  if (seed % 2 === 0) generator.close();
  // A model that is forgotten is freed when its objects are collected.
  if (seed % 7 !== 0) trainer.close();
  if (seed % 2 !== 0) generator.close();
}

async function held(): Promise<Held> {
  for (let i = 0; i < 5; i++) {
    globalThis.gc?.();
    await setImmediate(); // finalizers run from the event loop
  }
  const status = readFileSync('/proc/self/status', 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  const mappings = readFileSync('/proc/self/maps', 'utf8').split('\n').length;
  return { residentMiB: field('VmRSS') / 1024, mappings, threads: field('Threads') };
}

const rounds = Number(process.argv[2]);
for (let i = 1; i <= rounds; i++) {
  round(i);
  if (i % 20 === 0) await held();
  if (i === rounds / 5 || i === rounds) console.log(JSON.stringify(await held()));
}
