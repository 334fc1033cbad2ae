import { describe, expect, it } from 'vitest';
import { gradientError, numericGradient } from '../../../core/rl/finite-difference.test-support.ts';
import type { LossSettings } from '../../../core/records/schema.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { cutMicroBatch } from './micro-batch.ts';
import { dpoCoefficients, rewardModelCoefficients } from './pair-loss.ts';
import { packWhole } from '../samples/sequence-ends.ts';

/** Three pairs; prompts of two tokens, responses of 1 to 3; the last response was cut to nothing. */
const lengths = [2, 1, 3, 2, 1, 0];
const offsets = (sizes: readonly number[]) =>
  Int32Array.from(
    [0, ...sizes].map(
      (
        (sum) => (n) =>
          (sum += n)
      )(0),
    ),
  );
const scored = lengths.reduce((sum, n) => sum + n, 0);
const refLogProbs_T = Float32Array.from({ length: scored }, (_, t) => -0.5 - 0.1 * t);
const batch = {
  tokens_N: Int32Array.from({ length: scored + 12 }, (_, n) => n % 7),
  offsets_S1: offsets(lengths.map((n) => n + 2)),
  scored_T: Int32Array.from(lengths.flatMap((n, s) => Array.from({ length: n }, (_, t) => startOf(s) + 2 + t))),
  scoredOffsets_S1: offsets(lengths),
  mask_T: new Uint8Array(scored).fill(1),
  refLogProbs_T,
} as unknown as BatchTensors;
const logProbs = Float32Array.from({ length: scored }, (_, t) => -1 + 0.25 * Math.sin(t));
const settings = (lossMode: string, labelSmoothing = 0) =>
  ({ lossMode, constants: { beta: 0.5, labelSmoothing } }) as unknown as LossSettings;

function startOf(s: number): number {
  return lengths.slice(0, s).reduce((sum, n) => sum + n + 2, 0);
}

describe('the loss of pairs', () => {
  it.each([
    ['sigmoid', 0],
    ['sigmoid', 0.1],
    ['ipo', 0],
  ] as const)('%s with label smoothing %f has the gradient of finite differences', (mode, smoothing) => {
    const micro = cutMicroBatch(batch, Int32Array.of(0, 1, 2, 3, 4, 5));
    const of = (values: ArrayLike<number>) =>
      dpoCoefficients(settings(mode, smoothing), batch, micro, values as Float32Array, 6);
    const { gradients } = of(logProbs);
    const numeric = numericGradient((x) => of(x).loss, Float64Array.from(logProbs));
    expect(gradientError(Float64Array.from(gradients.logProbs ?? []), numeric)).toBeLessThan(1e-6);
  });

  it('adds up over micro-batches, metrics included', () => {
    const of = (...samples: number[]) => {
      const micro = cutMicroBatch(batch, Int32Array.from(samples));
      const { loss, metrics } = dpoCoefficients(settings('sigmoid'), batch, micro, own(micro.tokens_P), 6);
      return { loss, ...metrics };
    };
    const [whole, first, rest] = [of(0, 1, 2, 3, 4, 5), of(2, 3), of(0, 1, 4, 5)];
    for (const [name, value] of Object.entries(whole))
      expect(value, name).toBeCloseTo(Number(Reflect.get(first, name)) + Number(Reflect.get(rest, name)), 10);
    expect(whole).toMatchObject({
      'rewards/margins': expect.closeTo(
        Number(Reflect.get(whole, 'rewards/chosen')) - Number(Reflect.get(whole, 'rewards/rejected')),
        10,
      ),
    });
  });

  it('of a policy that equals its reference is log 2, with no pair right', () => {
    const micro = cutMicroBatch(batch, Int32Array.of(0, 1, 2, 3, 4, 5));
    const { loss, metrics } = dpoCoefficients(settings('sigmoid'), batch, micro, refLogProbs_T, 6);
    expect(loss).toBeCloseTo(Math.LN2, 12);
    expect(metrics).toMatchObject({ 'rewards/accuracies': 0, 'rewards/margins': 0 });
  });

  it('of a reward model has the gradient of finite differences', () => {
    const scores = Float32Array.of(0.5, -0.25, 1, 1.5);
    const { gradients, metrics } = rewardModelCoefficients(scores, 4);
    const numeric = numericGradient(
      (x) => rewardModelCoefficients(x as unknown as Float32Array, 4).loss,
      Float64Array.from(scores),
    );
    expect(gradientError(Float64Array.from(gradients.scores ?? []), numeric)).toBeLessThan(1e-5);
    expect(metrics).toEqual({
      'rewards/chosen': 0.75,
      'rewards/rejected': 0.625,
      'rewards/accuracies': 0.5,
      'rewards/margins': 0.125,
    });
  });

  const own = (tokens_P: Int32Array) => Float32Array.from(tokens_P, (t) => logProbs[t] ?? Number.NaN);
});

describe('whole sequences for a score head', () => {
  const sequences = [Int32Array.of(5, 6, 0, 0), Int32Array.of(7), Int32Array.of(0, 0)];

  it('are read at the last token that is no pad, as in transformers', () => {
    expect(packWhole(sequences, 0)).toMatchObject({ positions_P: Int32Array.of(1, 4, 5) });
  });

  it('are read at their last token where the model names no pad token', () => {
    expect(packWhole(sequences, undefined)).toMatchObject({ positions_P: Int32Array.of(3, 4, 6) });
  });
});
