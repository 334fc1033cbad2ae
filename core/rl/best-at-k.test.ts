import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bestAtK, momentsOf, worstAtK } from './best-at-k.ts';

/** Every list of k draws from the values, each equally likely. */
function allDraws<T>(values: readonly T[], k: number): T[][] {
  return k === 0 ? [[]] : allDraws(values, k - 1).flatMap((drawn) => values.map((value) => [...drawn, value]));
}

const values = fc.array(fc.constantFrom(-1.5, 0, 0.1, 0.25, 1, 3), { minLength: 1, maxLength: 5 });
const draws = fc.integer({ min: 1, max: 4 });

describe('best@k and worst@k', () => {
  it('are the moments over all draws with replacement (seed 42)', () => {
    fc.assert(
      fc.property(values, draws, (list, k) => {
        const drawn = allDraws(list, k);
        const all = (pick: (...of: number[]) => number) =>
          momentsOf(drawn.map((one) => ({ value: pick(...one), probability: 1 / drawn.length })));
        for (const [got, want] of [
          [bestAtK(list, k), all(Math.max)],
          [worstAtK(list, k), all(Math.min)],
        ] as const) {
          expect(got.mean).toBeCloseTo(want.mean, 12);
          expect(got.std).toBeCloseTo(want.std, 7);
        }
      }),
      { seed: 42 },
    );
  });

  it('mirror each other, and the best rises with k but stays below the largest value (seed 43)', () => {
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 40 }), (list, k) => {
        const [best, worst] = [
          bestAtK(list, k),
          worstAtK(
            list.map((x) => -x),
            k,
          ),
        ];
        expect(worst.mean).toBeCloseTo(-best.mean, 12);
        expect(worst.std).toBeCloseTo(best.std, 12);
        expect(bestAtK(list, k + 1).mean).toBeGreaterThanOrEqual(best.mean - 1e-12);
        expect(best.mean).toBeLessThanOrEqual(Math.max(...list) + 1e-12);
      }),
      { seed: 43 },
    );
  });

  it('have no spread at all for equal values', () => {
    expect(bestAtK([0.1, 0.1, 0.1], 3)).toEqual({ mean: 0.1, std: 0 });
    expect(worstAtK(Float64Array.of(0.23), 8)).toEqual({ mean: 0.23, std: 0 });
  });

  it('are below pass@k without replacement: one right answer of four is missed by four draws with 0.75^4', () => {
    expect(bestAtK([0, 0, 1, 0], 4).mean).toBeCloseTo(1 - 0.75 ** 4, 15);
  });

  it('refuse no values, and a k that is no number of draws', () => {
    expect(() => bestAtK([], 2)).toThrow('at least one value');
    expect(() => worstAtK([1], 0)).toThrow('got 0');
    expect(() => bestAtK([1], 1.5)).toThrow('got 1.5');
  });
});
