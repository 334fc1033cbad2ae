import { expect, it } from 'vitest';
import { correctedRollout } from './corrected-rollout.ts';
import type { Layout } from './batch-outputs.ts';

/** Two responses of two tokens; the trainer gives the second token of the first a hundred times the probability. */
const layout = {
  scoredOffsets_S1: Int32Array.of(0, 2, 4),
  mask_T: Uint8Array.of(1, 1, 1, 1),
  oldLogProbs_T: Float32Array.of(-1, -1, -2, -3),
  rolloutLogProbs_T: Float32Array.of(-1, -1 - Math.log(100), -2, -3),
} as unknown as Layout;

it('a batch without settings, old log-probs or valid tokens stays as it is', () => {
  const settings = { rolloutCorrection: { rollout_is: 'token' as const } };
  const { oldLogProbs_T: _, ...onPolicy } = layout;
  const masked = { ...layout, mask_T: new Uint8Array(4) };
  expect(correctedRollout({}, layout)).toEqual({ layout, metrics: {} });
  expect(correctedRollout(settings, onPolicy)).toEqual({ layout: onPolicy, metrics: {} });
  expect(correctedRollout(settings, masked)).toEqual({ layout: masked, metrics: {} });
});

it('importance weights are truncated at the threshold', () => {
  const rolloutCorrection = { rollout_is: 'token' as const, rollout_is_threshold: 2 };
  const corrected = correctedRollout({ rolloutCorrection }, layout);
  expect([...(corrected.layout.rolloutIsWeights_T ?? [])]).toEqual([1, 2, 1, 1]);
  expect(corrected.layout.mask_T).toEqual(layout.mask_T);
  expect(corrected.metrics['rollout_corr/rollout_is_mean']).toBeCloseTo(1.25, 6);
});

it('rejected sequences leave the mask, and weights are of all tokens before', () => {
  const rejection = { rollout_rs: 'seq_sum_k1', rollout_rs_threshold: '0.5_2' };
  const corrected = correctedRollout({ rolloutCorrection: { ...rejection, rollout_is: 'token' as const } }, layout);
  expect([...corrected.layout.mask_T]).toEqual([0, 0, 1, 1]);
  expect([...(corrected.layout.rolloutIsWeights_T ?? [])]).toEqual([1, 2, 1, 1]);
  expect(corrected.metrics['rollout_corr/rollout_rs_seq_masked_fraction']).toBe(0.5);
});
