import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { at } from '../at.ts';
import { momentsOf } from './best-at-k.ts';
import { majorityAtK, type Vote } from './majority-at-k.ts';

interface Response {
  readonly vote: Vote;
  readonly value: number;
}

/** Draws of responses in order: their most frequent vote, the first seen in a tie, and the first value with it. */
function majorityOf(drawn: readonly Response[]): number {
  const counts = new Map<Vote, number>();
  for (const { vote } of drawn) counts.set(vote, (counts.get(vote) ?? 0) + 1);
  const most = Math.max(...counts.values());
  const winner = [...counts].find(([, count]) => count === most)?.[0];
  return drawn.find(({ vote }) => vote === winner)?.value ?? Number.NaN;
}

function allDraws(responses: readonly Response[], k: number): Response[][] {
  return k === 0 ? [[]] : allDraws(responses, k - 1).flatMap((drawn) => responses.map((one) => [...drawn, one]));
}

const responses = fc.array(
  fc.record({ vote: fc.constantFrom<Vote>('A', 'B', 'C', 'D', null), value: fc.constantFrom(-1, 0, 0.25, 1) }),
  { minLength: 1, maxLength: 5 },
);
const majority = (of: readonly Response[], k: number) =>
  majorityAtK(
    of.map(({ value }) => value),
    of.map(({ vote }) => vote),
    k,
  );

describe('maj@k', () => {
  it('is the moments of the majority over all draws with replacement (seed 42)', () => {
    fc.assert(
      fc.property(responses, fc.integer({ min: 1, max: 5 }), (of, k) => {
        const drawn = allDraws(of, k);
        const want = momentsOf(drawn.map((one) => ({ value: majorityOf(one), probability: 1 / drawn.length })));
        const got = majority(of, k);
        expect(got.mean).toBeCloseTo(want.mean, 12);
        expect(got.std).toBeCloseTo(want.std, 7);
      }),
      { seed: 42, numRuns: 200 },
    );
  });

  it('is the mean of the values when all votes differ, and when all are one', () => {
    const values = Array.from({ length: 12 }, (_, i) => i / 7);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    for (const votes of [values.map(String), values.map(() => 'A')])
      expect(majorityAtK(values, votes, 12).mean).toBeCloseTo(mean, 12);
  });

  it('gives the largest party nearly all, with many draws (k above 170, where k! overflows)', () => {
    const votes = [...Array.from({ length: 6 }, () => 'right'), ...Array.from({ length: 4 }, () => 'wrong')];
    const { mean } = majorityAtK(
      votes.map((vote) => Number(vote === 'right')),
      votes,
      400,
    );
    // The binomial distribution: more than 200 of 400 draws, and half of exactly 200.
    let [weight, wins] = [1, 0];
    for (let i = 1; i <= 400; i++) weight *= 0.4;
    for (let right = 0; right <= 400; right++) {
      wins += right === 200 ? weight / 2 : right > 200 ? weight : 0;
      weight *= ((400 - right) / (right + 1)) * (0.6 / 0.4);
    }
    expect(mean).toBeCloseTo(wins, 10);
  });

  it('computes equal counts of votes once, and gives the same with and without', () => {
    const known = new Map<string, readonly number[]>();
    const votes = ['A', 'B', 'B', 'C'];
    const first = majorityAtK([1, 0, 1, 0], votes, 4, known);
    expect(majorityAtK([0, 1, 0, 0], ['x', 'x', 'y', 'z'], 4, known).mean).toBeGreaterThan(0);
    expect(known.size).toBe(1);
    expect(at([...known.values()], 0).reduce((sum, odds) => sum + odds, 0)).toBeCloseTo(1, 15);
    expect(majorityAtK([1, 0, 1, 0], votes, 4)).toEqual(first);
  });

  it('refuses no values, and votes of another number', () => {
    expect(() => majorityAtK([], [], 2)).toThrow('at least one value');
    expect(() => majorityAtK([1, 0], ['A'], 2)).toThrow('a vote for each value, got 1 for 2');
    expect(() => majorityAtK([1], ['A'], 0)).toThrow('got 0');
  });
});
