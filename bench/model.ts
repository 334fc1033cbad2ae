/** A model of a size with random weights, created in place, because a second copy would show in the memory rows. */
import { readDecoderSpec } from '../native/model/config.ts';
import { createTrainer } from '../native/index.ts';
import type { NativeTrainer } from '../native/index.ts';
import type { BenchSettings } from './measurement.ts';
import { configJson } from './sizes.ts';
import type { Size } from './sizes.ts';

/** Standard deviation of transformers' initialisation. */
export const deviation = 0.02;
/** Weights made at a time. */
const chunk = 1 << 20;

export function openModel(size: Size, { precision, threads }: BenchSettings, trainable: boolean): NativeTrainer {
  const config = readDecoderSpec(configJson(size), 'bench size');
  const trainer = createTrainer(config, { compute: precision, deterministic: false, threads, trainable });
  const random = uniform(1);
  for (const { name, offset, size: length } of trainer.parameters) {
    const values = new Float32Array(Math.min(length, chunk));
    for (let at = 0; at < length; at += chunk) {
      const part = values.subarray(0, length - at);
      if (name.endsWith('norm.weight')) part.fill(1);
      else for (let i = 0; i < part.length; i++) part[i] = (random() - 0.5) * deviation * Math.sqrt(12);
      trainer.write('weights', part, offset + at);
    }
  }
  trainer.weightsChanged();
  return trainer;
}

/** Xorshift32 (G. Marsaglia): fast, and good enough for weights that learn nothing. In [0, 1). */
export function uniform(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Random token ids; the first three are left out, as ids of special tokens. */
export function randomTokens(count: number, vocab: number, seed: number): Int32Array {
  const random = uniform(seed);
  return Int32Array.from({ length: count }, () => 3 + Math.floor(random() * (vocab - 3)));
}
