import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chosenPlaces, rowsAt } from './subset.ts';

const indices = (places: Uint8Array) => [...places.keys()].filter((i) => places[i] === 1);

describe('a random subset of the rows', () => {
  it('has as many rows as are wanted, all of them where there are not more', () => {
    const sizes = fc.tuple(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 0, max: 600 }), fc.integer());
    fc.assert(
      fc.property(sizes, ([total, wanted, seed]) => {
        expect(indices(chosenPlaces(total, wanted, seed, 'train'))).toHaveLength(Math.min(total, wanted));
      }),
    );
  });

  it('depends on the seed, and differs between training and validation', () => {
    const of = (seed: number, part: 'train' | 'validation') => indices(chosenPlaces(1000, 50, seed, part));
    expect(of(1, 'train')).toEqual(of(1, 'train'));
    expect(of(1, 'train')).not.toEqual(of(2, 'train'));
    expect(of(1, 'train')).not.toEqual(of(1, 'validation'));
  });

  it('takes every row equally often', () => {
    const counts = new Float64Array(20);
    for (let seed = 0; seed < 2000; seed++)
      for (const i of indices(chosenPlaces(20, 5, seed, 'train'))) counts[i]! += 1;
    // 500 each; four standard deviations of a binomial count are 77
    for (const count of counts) expect(Math.abs(count - 500)).toBeLessThan(77);
  });

  it('is read in the order of the rows, and refused when the rows have changed meanwhile', async () => {
    async function* letters(text: string) {
      yield* text;
    }
    const read = async (text: string) => {
      const found: string[] = [];
      for await (const letter of rowsAt(letters(text), Uint8Array.of(0, 1, 0, 1), 'rows.jsonl')) found.push(letter);
      return found.join('');
    };
    expect(await read('abcd')).toBe('bd');
    await expect(read('abc')).rejects.toThrow(/4 rows when they were counted, 3 when they were read/);
    await expect(read('abcde')).rejects.toThrow(/5 when they were read/);
  });
});
