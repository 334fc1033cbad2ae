import { describe, expect, it } from 'vitest';
import { raggedRows } from './ragged.ts';
import { gradientPower, signalAndNoise } from './variance-proxy.ts';

describe('the variance proxy', () => {
  /** Two samples of two tokens; the second token of the first is masked. */
  const rows = raggedRows([2, 2], [1, 0, 1, 1]);
  const input = {
    rows,
    oldLogProb_T: [Math.log(0.5), Number.NaN, Math.log(0.25), Math.log(0.25)],
    sumPiSquared_T: [0.5, Number.NaN, 0.25, 0.5],
    advantages_T: [2, Number.NaN, 1, 3],
  };

  it('ignores what is outside the mask, even NaN', () => {
    // W is 1 − 1 + 0.5 = 0.5 and 0.75 + 1 = 1.75; the mean advantages are 2 and 2.
    const metrics = gradientPower(input);
    expect(metrics['variance_proxy/expected_w']).toBeCloseTo(1.125, 12);
    expect(metrics['variance_proxy/expected_a_squared']).toBeCloseTo(4, 6);
    expect(metrics['variance_proxy/proxy2_total_power']).toBeCloseTo(4.5, 6);
    expect(signalAndNoise(4.5, 2, 1)['variance_proxy/proxy3_pure_noise']).toBeCloseTo(3.5, 6);
  });

  it('has no signal and no noise without a gradient norm', () => {
    expect(signalAndNoise(4.5, 2, undefined)).toEqual({
      'variance_proxy/proxy1_signal_strength': 0,
      'variance_proxy/proxy3_pure_noise': 0,
    });
  });

  it('is the same with importance weights of 1 as without', () => {
    const weighted = gradientPower({ ...input, rolloutIsWeights_T: [1, 1, 1, 1] });
    const plain = gradientPower(input);
    for (const name of Object.keys(plain) as (keyof typeof plain)[]) expect(weighted[name]).toBeCloseTo(plain[name], 6);
  });

  it('counts a masked sample with an advantage of 0', () => {
    const metrics = gradientPower({ ...input, rows: raggedRows([2, 2], [0, 0, 1, 1]) });
    expect(metrics['variance_proxy/expected_a_squared']).toBeCloseTo(2, 6);
  });

  it('refuses arrays of another length', () => {
    expect(() => gradientPower({ ...input, advantages_T: [1] })).toThrow('advantages has 1 values for 4 tokens');
  });
});
