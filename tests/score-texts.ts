/**
 * Log-probs of whole texts under a model, computed by the engine. check:hf and the real-model test compare them with
 * transformers.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineOptions, PackedBatch } from '../core/ports/policy.ts';
import { readDecoderSpec } from '../native/model/config.ts';
import { loadWeights } from '../native/model/weights.ts';
import { createTrainer } from '../native/index.ts';
import type { NativeTrainer } from '../native/index.ts';

/** The model of a Hugging Face folder. */
export async function openFolder(folder: string, options: EngineOptions, trainable: boolean): Promise<NativeTrainer> {
  const config = readDecoderSpec(JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')));
  const trainer = createTrainer(config, { ...options, trainable });
  await loadWeights(folder, trainer);
  return trainer;
}

/**
 * Positions [from, to) of one sequence, each with the token that follows it; the last token of all is followed by token
 * 0.
 */
export function oneSequence(ids: readonly number[], from = 0, to = ids.length - 1): PackedBatch {
  const positions_P = Int32Array.from({ length: to - from }, (_, i) => from + i);
  return {
    tokens_N: Int32Array.from(ids),
    cuSeqlens: Int32Array.of(0, ids.length),
    positions_P,
    targets_P: positions_P.map((at) => ids[at + 1] ?? 0),
  };
}

/** Log-prob of every token but the first. */
export function logProbsOf(trainer: NativeTrainer, ids: readonly number[]): Float32Array {
  return trainer.forward(oneSequence(ids), { temperature: 1, wants: ['logProbs'], keep: false }).outputs.logProbs;
}

/** Largest absolute difference. NaN when any value is NaN; infinity for lists of unequal length. */
export function largestDifference(got: ArrayLike<number>, want: ArrayLike<number>): number {
  if (got.length !== want.length) return Number.POSITIVE_INFINITY;
  let largest = 0;
  for (let i = 0; i < want.length; i++)
    largest = Math.max(largest, Math.abs((got[i] ?? Number.NaN) - (want[i] ?? Number.NaN)));
  return largest;
}
