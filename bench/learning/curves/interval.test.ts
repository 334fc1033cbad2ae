import { describe, expect, it } from 'vitest';
import { difference, upperQuantile } from './interval.ts';
import { judge } from './judge.ts';

describe('the quantile of Student’s t', () => {
  it.each([
    [7, 2.3646],
    [10, 2.2281],
    [14, 2.1448],
    [30, 2.0423],
    [1000, 1.9623],
  ])('at %i degrees of freedom is that of the tables', (degrees, expected) => {
    expect(Math.abs(upperQuantile(degrees) - expected)).toBeLessThan(0.001);
  });
});

describe('the interval of a difference of means', () => {
  it('is Welch’s', () => {
    // Equal spreads of 5 values each: 8 degrees of freedom, standard error 1, t = 2.306.
    const { mean, low, high } = difference([1, 2, 3, 4, 5], [2, 3, 4, 5, 6]);
    expect(mean).toBeCloseTo(-1, 12);
    expect(low).toBeCloseTo(-3.306, 2);
    expect(high).toBeCloseTo(1.306, 2);
  });

  it('has no width where nothing varies', () => {
    expect(difference([1, 1], [0.5, 0.5])).toEqual({ mean: 0.5, low: 0.5, high: 0.5 });
  });

  it('needs two values on each side', () => {
    expect(() => difference([1], [1, 2])).toThrow('an interval needs two seeds on each side, got 1 and 2');
  });
});

describe('the verdict on curves', () => {
  const bundle = (areas: readonly number[]) => areas.map((area) => [area - 0.1, area + 0.1]);

  it('passes when the whole interval is within the margin', () => {
    const close = { name: 'grpo', petrel: bundle([0.7, 0.71, 0.72]), trl: bundle([0.705, 0.71, 0.715]) };
    expect(judge(close)).toMatchObject({ passed: true });
  });

  it('fails when only the mean is', () => {
    const wide = { name: 'grpo', petrel: bundle([0.6, 0.7, 0.8]), trl: bundle([0.6, 0.7, 0.8]) };
    expect(judge(wide)).toMatchObject({ passed: false, difference: { mean: 0 } });
  });
});
