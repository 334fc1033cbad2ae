import { expect, test } from 'vitest';
import { chooseByWeight } from './weighted-choice.ts';

const key = [7, 4] as const;

test('chooses so many places, ascending, and the same ones again', () => {
  const numbers = Array.from({ length: 20 }, (_, i) => 1000 + i);
  const chosen = chooseByWeight(
    Array.from({ length: 20 }, () => 1),
    numbers,
    8,
    key,
  );
  expect(chosen).toHaveLength(8);
  expect(chosen).toEqual([...new Set(chosen)].sort((a, b) => a - b));
  expect(
    chooseByWeight(
      Array.from({ length: 20 }, () => 1),
      numbers,
      8,
      key,
    ),
  ).toEqual(chosen);
  expect(chooseByWeight([1, 1, 1], [5, 6, 7], 5, key)).toEqual([0, 1, 2]);
});

test('numbers beyond 32 bits have random numbers of their own', () => {
  const choices = [0, 1, 2, 3, 4].map((high) =>
    chooseByWeight(
      [1, 1, 1, 1, 1, 1, 1, 1],
      Array.from({ length: 8 }, (_, i) => high * 2 ** 32 + i),
      4,
      key,
    ).join(),
  );
  expect(new Set(choices).size).toBeGreaterThan(1);
});

test('the first one is chosen in proportion to the weights, and so is a second one after it (seed 7)', () => {
  const weights = [1, 2, 5];
  const [trials, first, pairs] = [40_000, [0, 0, 0], new Map<string, number>()];
  for (let i = 0; i < trials; i++) {
    const numbers = [3 * i, 3 * i + 1, 3 * i + 2];
    first[chooseByWeight(weights, numbers, 1, key)[0]!]! += 1;
    const pair = chooseByWeight(weights, numbers, 2, key).join();
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  // Five standard deviations of a share of 40,000 trials.
  const near = (share: number) => expect.closeTo(share, 1.9);
  expect(first.map((count) => count / trials)).toEqual(weights.map((weight) => near(weight / 8)));
  const both = (a: number, b: number) => (a / 8) * (b / (8 - a)) + (b / 8) * (a / (8 - b));
  expect(pairs.get('0,1')! / trials).toEqual(near(both(1, 2)));
  expect(pairs.get('1,2')! / trials).toEqual(near(both(2, 5)));
  expect(Math.abs(first[2]! / trials - 5 / 8)).toBeLessThan(0.0125);
  expect(Math.abs(pairs.get('0,1')! / trials - both(1, 2))).toBeLessThan(0.0125);
});

test('refuses weights that are 0, negative or not finite', () => {
  for (const weight of [0, -1, NaN, Infinity])
    expect(() => chooseByWeight([1, weight], [0, 1], 1, key)).toThrow(/weight/);
});
