import { describe, expect, test } from 'vitest';
import { parseRejection, parseRolloutCorrection } from './options.ts';
import { parseBounds } from './threshold.ts';

describe('thresholds', () => {
  test.each([
    [2, { upper: 2 }],
    ['2', { upper: 2 }],
    [' 1.5 ', { upper: 1.5 }],
    ['0.5_5', { lower: 0.5, upper: 5 }],
    ['.5 _ 1e1', { lower: 0.5, upper: 10 }],
    ['1e-7_1e9', { lower: 1e-7, upper: 1e9 }],
    ['0.5_inf', { lower: 0.5, upper: Infinity }],
    ['2_2', { lower: 2, upper: 2 }],
  ])('%j is read', (spec, bounds) => {
    expect(parseBounds('rollout_is_threshold', spec)).toEqual(bounds);
  });

  test.each([
    ['', /expected a positive number or "low_high", got ""/],
    ['abc', /got "abc"/],
    [true, /got true/],
    [null, /got null/],
    [undefined, /got nothing/],
    [[0.1], /got \[0.1\]/],
    [NaN, /got null/],
    ['0.5_', /got "0.5_"/],
    ['_2', /got "_2"/],
    ['0x10', /got "0x10"/],
    ['0.5_1_2', /got "0.5_1_2"/],
    [0, /greater than 0, got 0/],
    [-1, /greater than 0, got -1/],
    ['0_2', /greater than 0, got 0$/],
    ['-0.5_2', /greater than 0, got -0.5/],
    ['2_1', /lower bound 2 is above the upper bound 1/],
  ])('%j is refused, with the key and what came', (spec, message) => {
    expect(() => parseBounds('rollout_is_threshold', spec)).toThrow(message);
    expect(() => parseBounds('rollout_is_threshold', spec)).toThrow(/^rollout_is_threshold/);
  });
});

describe('rejection', () => {
  test('has one rule for each statistic, with bounds of k1 as logarithms', () => {
    expect(parseRejection('token_k1, seq_mean_k3', '0.5_2, 0.05')).toEqual([
      { statistic: 'token_k1', estimator: 'k1', over: 'none', lowest: Math.log(0.5), highest: Math.log(2) },
      { statistic: 'seq_mean_k3', estimator: 'k3', over: 'mean', highest: 0.05 },
    ]);
  });

  test('reads one bound u of k1 as [1/u, u]', () => {
    expect(parseRejection('seq_sum_k1', 3)).toEqual([
      { statistic: 'seq_sum_k1', estimator: 'k1', over: 'sum', lowest: Math.log(1 / 3), highest: Math.log(3) },
    ]);
  });

  test('counts a repeated statistic once, and one threshold serves all', () => {
    expect(parseRejection('token_k2,token_k2,seq_max_k3', 0.2).map(({ highest }) => highest)).toEqual([0.2, 0.2]);
  });

  test.each([
    ['token_k4', 1, /unknown statistic "token_k4"/],
    ['seq_max_k1', 1, /unknown statistic "seq_max_k1"/],
    ['', 1, /expected a list/],
    [' , ', 1, /expected a list/],
    [3, 1, /expected a list/],
    ['token_k1', null, /needs rollout_rs_threshold/],
    ['token_k1', undefined, /needs rollout_rs_threshold/],
    ['token_k1', 0.5, /must be at least 1, got 0.5/],
    ['token_k2', '0.1_0.2', /token_k2 has only an upper bound/],
    ['token_k1,token_k2,token_k3', '1.0,2.0', /2 thresholds for 3 statistics/],
    ['token_k2', ' , ', /0 thresholds for 1 statistics/],
  ])('%j with threshold %j is refused', (statistics, threshold, message) => {
    expect(() => parseRejection(statistics, threshold)).toThrow(message);
  });
});

describe('the section', () => {
  test('empty, only measures drift', () => {
    expect(parseRolloutCorrection({})).toEqual({ rejection: [], lossType: 'ppo_clip' });
  });

  test("has verl's default threshold, and null turns weights off", () => {
    expect(parseRolloutCorrection({ rollout_is: 'token' }).weights).toEqual({
      level: 'token',
      bounds: { upper: 2 },
      batchNormalize: false,
    });
    expect(parseRolloutCorrection({ rollout_is: 'token', rollout_is_threshold: null }).weights).toBeUndefined();
  });

  test('refuses an unknown level or loss type', () => {
    expect(() => parseRolloutCorrection({ rollout_is: 'group' })).toThrow(/rollout_is: expected token or sequence/);
    expect(() => parseRolloutCorrection({ loss_type: 'ppo' })).toThrow(/loss_type: expected ppo_clip or reinforce/);
  });
});
