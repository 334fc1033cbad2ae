import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batchesByLength } from './batches.ts';

const limits = { tokens: 64, pairs: 1024, sequences: 8, padding: true };
const lengths = fc.array(fc.integer({ min: 1, max: 100 }), { maxLength: 60 });

describe('batches by length', () => {
  it('hold every sequence once, within the limits unless one stands alone', () => {
    fc.assert(
      fc.property(lengths, (all) => {
        const batches = batchesByLength(all, limits);
        expect(batches.flat().toSorted((a, b) => a - b)).toEqual(all.map((_, s) => s));
        for (const batch of batches) {
          const longest = Math.max(...batch.map((s) => all[s] as number));
          if (batch.length === 1) continue;
          expect(batch.length).toBeLessThanOrEqual(limits.sequences);
          expect(batch.length * longest).toBeLessThanOrEqual(limits.tokens);
          expect(batch.length * longest ** 2).toBeLessThanOrEqual(limits.pairs);
        }
      }),
    );
  });

  it('put similar lengths together, and equal ones in their order', () => {
    expect(batchesByLength([3, 30, 4, 29, 3], { ...limits, pairs: 1e6 })).toEqual([
      [1, 3],
      [2, 0, 4],
    ]);
  });

  it('hold one length each where nothing may be padded, and one sequence each where they are alone', () => {
    expect(batchesByLength([2, 3, 2], { ...limits, padding: false })).toEqual([[1], [0, 2]]);
    expect(batchesByLength([2, 3, 2], { ...limits, sequences: 1 })).toEqual([[1], [0], [2]]);
    expect(batchesByLength([], limits)).toEqual([]);
  });
});
