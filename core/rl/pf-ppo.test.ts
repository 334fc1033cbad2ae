import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawWithReplacement, pfPpoWeights, type DrawSeed } from './pf-ppo.ts';

const seed: DrawSeed = { key: [7, 3], counter: [12, 0, 0] };

describe('the weights', () => {
  test('follow the method, plus 1e-8', () => {
    expect([...pfPpoWeights([-2, 1, 0])]).toEqual([4 + 1e-8, 1 + 1e-8, 1e-8]);
    expect([...pfPpoWeights([-2, 1, 0], { weightPow: 1 })]).toEqual([2 + 1e-8, 1 + 1e-8, 1e-8]);
    expect([...pfPpoWeights([-2, 1, 0], { reweightMethod: 'max_min' })]).toEqual([1 + 1e-8, 1 + 1e-8, 1e-8]);
    expect([...pfPpoWeights([-2, 1, 1], { reweightMethod: 'max_random' })]).toEqual([
      0.1 + 1e-8,
      0.4 + 1e-8,
      0.4 + 1e-8,
    ]);
    expect([...pfPpoWeights([])]).toEqual([]);
  });

  test('of an unknown method are refused', () => {
    expect(() => pfPpoWeights([1], { reweightMethod: 'min_max' as 'pow' })).toThrow(
      expect.objectContaining({ hint: 'one of pow, max_min, max_random' }),
    );
  });
});

describe('the draw', () => {
  test('is the same for the same seed, and another one for another counter or key', () => {
    const weights = Float64Array.from({ length: 50 }, (_, i) => 1 + i);
    const drawn = drawWithReplacement(weights, 50, seed);
    expect(drawWithReplacement(weights, 50, seed)).toEqual(drawn);
    expect(drawWithReplacement(weights, 50, { ...seed, counter: [13, 0, 0] })).not.toEqual(drawn);
    expect(drawWithReplacement(weights, 50, { ...seed, key: [8, 3] })).not.toEqual(drawn);
  });

  test('begins with the same indices when more are drawn', () => {
    expect([...drawWithReplacement([1, 2, 3], 9, seed)].slice(0, 4)).toEqual([
      ...drawWithReplacement([1, 2, 3], 4, seed),
    ]);
  });

  test('draws an index in proportion to its weight, and never one with the weight 0', () => {
    const counts = [0, 0, 0, 0, 0];
    for (const index of drawWithReplacement([0, 1, 0, 3, 0], 8000, seed)) counts[index] = counts[index]! + 1;
    expect([counts[0], counts[2], counts[4]]).toEqual([0, 0, 0]);
    expect(counts[3]! / 8000).toBeCloseTo(0.75, 1);
  });

  test('gives indices that have a weight, for any weights', () => {
    const weights = fc.array(fc.constantFrom(0, 1e-300, 1e-8, 1, 1e12), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(
        weights.filter((all) => all.some((w) => w > 0)),
        fc.nat(),
        (all, iteration) => {
          for (const index of drawWithReplacement(all, 20, { key: [1, 3], counter: [iteration, 0, 0] })) {
            expect(all[index]).toBeGreaterThan(0);
          }
        },
      ),
    );
  });

  test('refuses weights that no draw can follow', () => {
    for (const weights of [[1, -1], [NaN], [0, 0], [Infinity], []]) {
      expect(() => drawWithReplacement(weights, 1, seed)).toThrow(/weight/);
    }
    expect(drawWithReplacement([], 0, seed)).toEqual(new Int32Array());
  });
});
