/** Small random decoders and batches for tests of the engine. Same seed, same numbers. */
import { at } from '../../core/at.ts';
import type { DecoderConfig, PackedBatch } from '../../core/ports.ts';
import { createTrainer, type NativeTrainer, type TrainerOptions } from '../index.ts';

/** Mulberry32: uniform in [0, 1). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function decoder(changes: Partial<DecoderConfig> = {}): DecoderConfig {
  const config = {
    family: 'llama' as const,
    layers: 2,
    hidden: 20,
    heads: 4,
    kvHeads: 2,
    headDim: 6,
    ffn: 27,
    vocab: 37,
    normEps: 1e-5,
    tied: false,
    qkvBias: false,
    outBias: false,
    mlpBias: false,
    qkNorm: false,
    maxPositions: 512,
    ...changes,
  };
  const ropeInvFreq = Array.from({ length: config.headDim / 2 }, (_, i) => 1 / 100 ** ((2 * i) / config.headDim));
  return { ropeInvFreq, windows: Array<number>(config.layers).fill(0), ...config };
}

/** A trainer with random weights: matrices uniform with deviation about 0.3, vectors of norms near 1. */
export function trainerOf(config: DecoderConfig, seed: number, options: Partial<TrainerOptions> = {}): NativeTrainer {
  const trainer = createTrainer(config, {
    compute: 'fp32',
    deterministic: true,
    threads: 1,
    trainable: true,
    ...options,
  });
  const random = randomOf(seed);
  for (const { name, offset, size } of trainer.parameters) {
    const [middle, width] = name.endsWith('norm.weight') ? [1, 0.6] : [0, 1];
    for (let i = 0; i < size; i++) trainer.weights[offset + i] = middle + width * (random() - 0.5);
  }
  trainer.weightsChanged();
  return trainer;
}

/** Sequences of the given lengths; every position scored against a random token. */
export function batchOf(config: DecoderConfig, lengths: readonly number[], seed: number): PackedBatch {
  const random = randomOf(seed);
  const sequences = lengths.map((length) => Array.from({ length }, () => Math.floor(random() * config.vocab)));
  return packed(
    sequences,
    sequences.flat().map(() => Math.floor(random() * config.vocab)),
  );
}

export function packed(sequences: readonly (readonly number[])[], targets: readonly number[]): PackedBatch {
  const cuSeqlens = [0];
  for (const sequence of sequences) cuSeqlens.push(at(cuSeqlens, -1) + sequence.length);
  const tokens_N = Int32Array.from(sequences.flat());
  return {
    tokens_N,
    cuSeqlens: Int32Array.from(cuSeqlens),
    positions_P: tokens_N.map((_, i) => i),
    targets_P: Int32Array.from(targets),
  };
}

export function sampleOf(batch: PackedBatch, s: number): PackedBatch {
  const [from, to] = [at(batch.cuSeqlens, s), at(batch.cuSeqlens, s + 1)];
  const tokens_N = batch.tokens_N.slice(from, to);
  const cuSeqlens = Int32Array.of(0, to - from);
  return { tokens_N, cuSeqlens, positions_P: tokens_N.map((_, i) => i), targets_P: batch.targets_P.slice(from, to) };
}
