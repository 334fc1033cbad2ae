import fc from 'fast-check';
import { expect, test } from 'vitest';
import { arbitraryRows, arbitraryValues } from '../arbitrary.test-support.ts';
import { raggedRows } from '../ragged.ts';
import { correctRollout } from './index.ts';
import { parseRolloutCorrection, REJECTION_STATISTICS } from './options.ts';

const batch = arbitraryRows.chain((rows) => {
  const logProbs = arbitraryValues(rows.mask_T.length, -4, 0);
  return fc.tuple(fc.constant(rows), logProbs, logProbs);
});
const valid = (mask_T: ArrayLike<number>) => Array.from(mask_T).filter((mask) => mask !== 0).length;

test.each(['token', 'sequence'])('weights per %s are within the bounds, and 0 outside the mask', (rollout_is) => {
  fc.assert(
    fc.property(batch, fc.constantFrom(1.5, '0.5_2'), ([rows, train_T, rollout_T], rollout_is_threshold) => {
      fc.pre(valid(rows.mask_T) > 0);
      const options = parseRolloutCorrection({ rollout_is, rollout_is_threshold });
      const { rolloutIsWeights_T, mask_T } = correctRollout(rows, train_T, rollout_T, options);
      expect([...(mask_T as Float64Array)]).toEqual([...(rows.mask_T as Float64Array)]);
      rolloutIsWeights_T!.forEach((weight, t) => {
        if (rows.mask_T[t] === 0) expect(weight).toBe(0);
        else if (rollout_is_threshold === 1.5) expect(weight).toBeLessThanOrEqual(1.5);
        else expect(weight === 0 || (weight >= 0.5 && weight <= 2)).toBe(true);
      });
    }),
  );
});

test('normalised weights have mean 1, over tokens or over rows', () => {
  fc.assert(
    fc.property(batch, ([rows, train_T, rollout_T]) => {
      fc.pre(valid(rows.mask_T) > 0);
      const options = parseRolloutCorrection({ rollout_is: 'token', rollout_is_batch_normalize: true });
      const { rolloutIsWeights_T } = correctRollout(rows, train_T, rollout_T, options);
      expect(rolloutIsWeights_T!.reduce((sum, weight) => sum + weight, 0) / valid(rows.mask_T)).toBeCloseTo(1, 6);
    }),
  );
});

test.each(REJECTION_STATISTICS)('%s only removes tokens, whole rows at once unless it judges tokens', (rollout_rs) => {
  fc.assert(
    fc.property(batch, ([rows, train_T, rollout_T]) => {
      fc.pre(valid(rows.mask_T) > 0);
      const options = parseRolloutCorrection({ rollout_rs, rollout_rs_threshold: 1.3 });
      const { mask_T } = correctRollout(rows, train_T, rollout_T, options);
      for (let t = 0; t < rows.mask_T.length; t++) expect([0, rows.mask_T[t]]).toContain(mask_T[t]);
      if (rollout_rs.startsWith('token')) return;
      for (let s = 0; s + 1 < rows.offsets_S1.length; s++) {
        const span = [rows.offsets_S1[s]!, rows.offsets_S1[s + 1]!] as const;
        const kept = Array.from(mask_T).slice(...span);
        expect([kept.map(() => 0), Array.from(rows.mask_T).slice(...span)]).toContainEqual(kept);
      }
    }),
    { numRuns: 30 },
  );
});

test('rules judge the original mask, and a token stays only if all accept it', () => {
  fc.assert(
    fc.property(batch, ([rows, train_T, rollout_T]) => {
      fc.pre(valid(rows.mask_T) > 0);
      const kept = (rollout_rs: string) => {
        const options = parseRolloutCorrection({ rollout_rs, rollout_rs_threshold: 1.4 });
        return Array.from(correctRollout(rows, train_T, rollout_T, options).mask_T);
      };
      const [both, tokens, sequences] = ['token_k1,seq_mean_k2', 'token_k1', 'seq_mean_k2'].map(kept);
      expect(both).toEqual(tokens!.map((mask, t) => Math.min(mask, sequences![t]!)));
    }),
  );
});

test('equal policies have weight 1, no drift and no rejection', () => {
  const rows = raggedRows([3, 2], [1, 1, 0, 1, 1]);
  const logProbs = [-1, -2, -3, -0.5, -0.25];
  const options = parseRolloutCorrection({
    rollout_is: 'sequence',
    rollout_rs: 'token_k1,seq_max_k3',
    rollout_rs_threshold: 1.01,
  });
  const { rolloutIsWeights_T, mask_T, metrics } = correctRollout(rows, logProbs, logProbs, options);
  expect([...rolloutIsWeights_T!]).toEqual([1, 1, 0, 1, 1]);
  expect([...(mask_T as Float64Array)]).toEqual([1, 1, 0, 1, 1]);
  expect(metrics['rollout_corr/k3_kl']).toBe(0);
  expect(metrics['rollout_corr/rollout_rs_masked_fraction']).toBe(0);
  expect(metrics['rollout_corr/rollout_is_eff_sample_size']).toBeCloseTo(1, 6);
});

test('weights that are all outside give an effective sample size of 0, not an error', () => {
  const options = parseRolloutCorrection({ rollout_is: 'token', rollout_is_threshold: '0.5_2' });
  const { metrics } = correctRollout(raggedRows([2]), [-1, -1], [-4, -4], options);
  expect(metrics['rollout_corr/rollout_is_eff_sample_size']).toBe(0);
});

test('with one bound below 1 a weight can be above it and below its inverse', () => {
  const options = parseRolloutCorrection({ rollout_is: 'token', rollout_is_threshold: 0.5 });
  const rows = raggedRows([3, 3], [1, 1, 1, 1, 1, 0]);
  const { metrics } = correctRollout(rows, [0.1, -0.1, -0.8, 0, 0.2, -0.4], [0, 0, 0, 0, 0, 0], options);
  expect(metrics['rollout_corr/rollout_is_ratio_fraction_low']).toBeCloseTo(1, 6); // as verl's function gives it
  expect(metrics['rollout_corr/rollout_is_ratio_fraction_high']).toBeCloseTo(0.8, 6);
});

test('nothing outside the mask matters', () => {
  const rows = raggedRows([3], [1, 0, 1]);
  const options = parseRolloutCorrection({ rollout_is: 'sequence', rollout_rs: 'seq_max_k3', rollout_rs_threshold: 5 });
  for (const rubbish of [NaN, Infinity, -Infinity]) {
    expect(correctRollout(rows, [-1, rubbish, -2], [-1.5, -1, -2.5], options)).toEqual(
      correctRollout(rows, [-1, 0, -2], [-1.5, rubbish, -2.5], options),
    );
  }
});

test('no valid token, and arrays of another length, are refused', () => {
  const options = parseRolloutCorrection({});
  expect(() => correctRollout(raggedRows([2], [0, 0]), [-1, -1], [-1, -1], options)).toThrow(
    /at least one valid token/,
  );
  expect(() => correctRollout(raggedRows([]), [], [], options)).toThrow(/at least one valid token/);
  expect(() => correctRollout(raggedRows([2]), [-1, -1], [-1], options)).toThrow(/rollout log-probs has 1 values/);
});
