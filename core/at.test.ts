import { describe, expect, it } from 'vitest';
import { at } from './at.ts';

describe('at', () => {
  it('reads from the start and from the end, of lists and of typed arrays', () => {
    expect(at(['a', 'b'], 1)).toBe('b');
    expect(at(Float32Array.of(1, 2, 3), -1)).toBe(3);
    expect(at([0], 0)).toBe(0);
  });

  it.each([
    [[], 0],
    [['a'], 1],
    [['a'], -2],
    [['a'], 0.5],
    [['a'], Number.NaN],
  ])('throws for a missing element: %j at %d', (list, index) => {
    expect(() => at<string>(list, index)).toThrow(RangeError);
  });
});
