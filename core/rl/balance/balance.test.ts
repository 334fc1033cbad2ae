import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { balancedPartitions } from './karmarkar-karp.ts';
import { packMicroBatches } from './pack-micro-batches.ts';

const lengths = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 40 });
const everyRow = (count: number) => Array.from({ length: count }, (_, s) => s);
const sorted = (parts: readonly (readonly number[])[]) => parts.flat().sort((a, b) => a - b);

describe('packing into micro-batches', () => {
  test('is a deterministic partition of the rows within the token limit', () => {
    fc.assert(
      fc.property(lengths, fc.integer({ min: 100, max: 400 }), (lengths_S, limit) => {
        const parts = packMicroBatches(lengths_S, limit);
        expect(sorted(parts)).toEqual(everyRow(lengths_S.length));
        for (const part of parts) expect(part.reduce((sum, s) => sum + lengths_S[s]!, 0)).toBeLessThanOrEqual(limit);
        expect(packMicroBatches(lengths_S, limit)).toEqual(parts);
      }),
    );
  });

  test('uses the fewest micro-batches for similar lengths, and balances them', () => {
    expect(packMicroBatches([10, 10, 10, 10], 40)).toEqual([[0, 1, 2, 3]]);
    expect(
      packMicroBatches([30, 10, 10, 10], 30)
        .map((part) => part.length)
        .sort(),
    ).toEqual([1, 3]);
    expect(packMicroBatches([30, 30, 30, 30], 45)).toHaveLength(4);
    expect(packMicroBatches([], 10)).toEqual([]);
  });

  test('names a row that is too long by itself', () => {
    expect(() => packMicroBatches([3, 50], 40)).toThrow(/sequence 1 has 50 tokens/);
  });
});

describe('Karmarkar–Karp', () => {
  test('partitions the items, with equal counts when asked', () => {
    fc.assert(
      fc.property(lengths, fc.integer({ min: 1, max: 5 }), (sizes, parts) => {
        fc.pre(sizes.length >= parts);
        expect(sorted(balancedPartitions(sizes, parts, false))).toEqual(everyRow(sizes.length));
        const even = sizes.slice(0, sizes.length - (sizes.length % parts));
        const equal = balancedPartitions(even, parts, true);
        expect(sorted(equal)).toEqual(everyRow(even.length));
        for (const part of equal) expect(part).toHaveLength(even.length / parts);
      }),
    );
  });

  test('leaves sums that differ by no more than the largest item', () => {
    fc.assert(
      fc.property(lengths, fc.integer({ min: 2, max: 4 }), (sizes, parts) => {
        fc.pre(sizes.length >= parts);
        const sums = balancedPartitions(sizes, parts, false).map((part) => part.reduce((sum, i) => sum + sizes[i]!, 0));
        expect(Math.max(...sums) - Math.min(...sums)).toBeLessThanOrEqual(Math.max(...sizes));
      }),
    );
  });
});
