import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cursorAfter, drawAt, drawsPast, mergeRanges } from './draws.ts';
import type { DrawStream } from './draws.ts';
import { permute, permutedRange } from './permutation.ts';

const drawsFrom = (stream: DrawStream, cursor: number, count: number) =>
  Array.from({ length: count }, (_, i) => drawAt(stream, cursor + i));

describe('the keyed permutation', () => {
  test('is a bijection for every size and key', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600 }), fc.array(fc.maxSafeNat(), { maxLength: 3 }), (size, key) => {
        expect(permutedRange(size, key).sort((a, b) => a - b)).toEqual(Array.from({ length: size }, (_, i) => i));
      }),
    );
  });

  test('moves every element to each place about equally often', () => {
    const [size, keys] = [7, 7000];
    for (let index = 0; index < size; index++) {
      const counts = new Array<number>(size).fill(0);
      for (let key = 0; key < keys; key++) counts[permute(index, size, [key])]!++;
      for (const count of counts) expect(Math.abs(count - keys / size)).toBeLessThan(0.15 * (keys / size));
    }
  });

  test('uses the high half of a key too', () => {
    expect(permutedRange(50, [5])).not.toEqual(permutedRange(50, [5 + 2 ** 32]));
    expect(permutedRange(50, [1, 2])).not.toEqual(permutedRange(50, [2, 1]));
  });

  test('never changes, because recorded runs depend on it', () => {
    expect(permutedRange(12, [42, 0])).toEqual([11, 7, 3, 6, 4, 10, 5, 1, 0, 9, 8, 2]);
    expect([0, 1, 2, 999_999].map((index) => permute(index, 1_000_000, [7, 3]))).toEqual([
      261562, 576302, 128828, 730599,
    ]);
  });

  test('refuses an invalid index', () => {
    expect(() => permute(5, 5, [])).toThrow(/outside/);
    expect(() => permute(0, 0, [])).toThrow(/size/);
  });
});

describe('the stream of draws', () => {
  test('reads every row once per pass, in another order each pass, for any batch size', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.maxSafeNat(),
        fc.integer({ min: 1, max: 25 }),
        (rows, seed, batch) => {
          const stream = { rows, seed, shuffle: true };
          const drawn: number[] = [];
          for (let cursor = 0; cursor < 2 * rows; cursor += batch)
            drawn.push(...drawsFrom(stream, cursor, batch).map((draw) => draw.row));
          expect(new Set(drawn.slice(0, rows)).size).toBe(rows);
          expect(new Set(drawn.slice(rows, 2 * rows)).size).toBe(rows);
        },
      ),
    );
    const order = (epoch: number) =>
      drawsFrom({ rows: 40, seed: 1, shuffle: true }, epoch * 40, 40).map((draw) => draw.row);
    expect(order(0)).not.toEqual(order(1));
  });

  test('without shuffling reads the rows in order, pass after pass', () => {
    expect(drawsFrom({ rows: 3, seed: 9, shuffle: false }, 2, 3)).toEqual([
      { draw: 2, row: 2, epoch: 0 },
      { draw: 3, row: 0, epoch: 1 },
      { draw: 4, row: 1, epoch: 1 },
    ]);
  });

  test('gives any draw directly', () => {
    expect(drawAt({ rows: 1000, seed: 3, shuffle: true }, 123_456_789_012).epoch).toBe(123_456_789);
    expect(() => drawAt({ rows: 1000, seed: 3, shuffle: true }, -1)).toThrow(/whole number/);
  });
});

describe('skipped draws', () => {
  const stream = { rows: 7, seed: 3, shuffle: true };
  const ranges = fc.array(
    fc.tuple(fc.nat(40), fc.nat(40)).map(([a, b]): [number, number] => [a, a + b]),
    { maxLength: 5 },
  );
  const holds = (all: readonly (readonly [number, number])[], draw: number) =>
    all.some(([start, end]) => start <= draw && draw < end);

  test('are skipped, and no others', () => {
    fc.assert(
      fc.property(ranges, fc.nat(30), fc.integer({ min: 1, max: 20 }), (skipped, cursor, count) => {
        const draws = drawsPast(stream, cursor, count, skipped);
        const wanted = drawsFrom(stream, cursor, count + 300)
          .filter(({ draw }) => !holds(skipped, draw))
          .slice(0, count);
        expect(draws).toEqual(wanted);
        expect(cursorAfter(cursor, draws)).toBe(draws.at(-1)!.draw + 1);
      }),
    );
  });

  test('merge to the same set, ascending and disjoint', () => {
    fc.assert(
      fc.property(ranges, fc.nat(30), (all, from) => {
        const merged = mergeRanges(all, from);
        for (let draw = 0; draw < 90; draw++) expect(holds(merged, draw)).toBe(draw >= from && holds(all, draw));
        for (const [i, [start]] of merged.entries()) if (i > 0) expect(start).toBeGreaterThan(merged[i - 1]![1]);
      }),
    );
  });
});
