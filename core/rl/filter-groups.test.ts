import { describe, expect, it } from 'vitest';
import { reasonToFilter } from './filter-groups.ts';

describe('a group is filtered', () => {
  it.each([
    [[1, null], '1 of 2 samples are valid'],
    [[null, null, null], '0 of 3 samples are valid'],
    [[null], '0 of 1 samples are valid'],
  ])('when too few samples have a score: %j', (values, reason) => {
    expect(reasonToFilter(values)).toBe(reason);
    expect(reasonToFilter(values, 'acc')).toBe(reason);
  });

  it('by dynamic sampling when its valid samples have equal values', () => {
    expect(reasonToFilter([1, 1, null, 1], 'acc')).toBe('all samples have the same acc, 1');
    expect(reasonToFilter([1, 1, null, 1])).toBeUndefined();
    expect(reasonToFilter([0, 1], 'acc')).toBeUndefined();
  });

  it('by dynamic sampling only where the std is exactly 0, as numpy computes it', () => {
    expect(reasonToFilter([0.1, 0.1, 0.1], 'score')).toBeUndefined();
    expect(reasonToFilter([0.1, 0.1], 'score')).toBe('all samples have the same score, 0.1');
  });

  it('never when it has one sample by design', () => {
    expect(reasonToFilter([0.5], 'score')).toBeUndefined();
  });
});
