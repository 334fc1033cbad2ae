import { describe, expect, it } from 'vitest';
import { groupsWithoutSignal, standardDeviation } from './group-signal.ts';

describe('the share of groups without a signal', () => {
  it('counts the groups whose scores are all equal, in any order of samples', () => {
    expect(groupsWithoutSignal([1, 0, 1, 1, 0, 0], [7, 8, 7, 9, 8, 9])).toBeCloseTo(2 / 3);
    expect(groupsWithoutSignal([0, 0, 0, 0], [1, 1, 2, 2])).toBe(1);
    expect(groupsWithoutSignal([0, 1, 0.5, 1], [1, 1, 2, 2])).toBe(0);
    expect(groupsWithoutSignal([], [])).toBeNaN();
  });
});

describe('the standard deviation', () => {
  it('is that of the population', () => {
    expect(standardDeviation([2, 4, 4, 4, 5, 5, 7, 9])).toBe(2);
    expect(standardDeviation(Float32Array.of(0.5, 0.5))).toBe(0);
  });
});
