/**
 * Majority votes of k responses drawn with replacement from the n responses to a prompt (verl: `maj@k`,
 * `calc_maj_val`): the votes are counted, a tie goes to the vote that was drawn first, and the result is the value of
 * the first response with that vote. Exact, in place of verl's bootstrap of 1,000 draws.
 *
 * The counts of the C different votes are multinomial with p_c = n_c / n. The order of the draws is independent of
 * their counts, so each of j tied votes was drawn first with probability 1/j, and the first response with a vote is any
 * of its n_c responses, each equally likely:
 *
 *   P(c wins) = Σ_M Σ_j P(N_c = M, j other counts are M, the rest are below M) / (j + 1)
 *
 * A multinomial count is a Poisson count with mean k·p_c, given that all counts add up to k; factors that all terms
 * share cancel. The time grows with C·k³: about 1 ms for 16 responses, up to 0.1 s for 64 that all differ.
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { momentsOf, type Moments } from './best-at-k.ts';
import type { Numbers } from './ragged.ts';

/** A vote; null is the vote of responses without an answer. */
export type Vote = string | null;

/** Odds that were computed before. Calls that may repeat counts of votes share one. */
export type KnownOdds = Map<string, readonly number[]>;

/**
 * Mean and standard deviation of the value of the majority. @throws InvalidInputError without values, when votes and
 * values differ in number, and for a k that is no whole number from 1.
 */
export function majorityAtK(values: Numbers, votes: readonly Vote[], k: number, known: KnownOdds = new Map()): Moments {
  if (values.length === 0) throw new InvalidInputError('maj@k needs at least one value');
  if (values.length !== votes.length) {
    throw new InvalidInputError(`maj@k needs a vote for each value, got ${votes.length} for ${values.length}`);
  }
  if (!(Number.isSafeInteger(k) && k >= 1)) throw new InvalidInputError(`k is a whole number from 1, got ${k}`);
  const byVote = new Map<Vote, number[]>();
  for (const [i, vote] of votes.entries()) byVote.set(vote, [...(byVote.get(vote) ?? []), at(values, i)]);
  const groups = [...byVote.values()].sort((a, b) => a.length - b.length);
  const counts = groups.map((group) => group.length);
  const key = `${k} of ${counts.join(' ')}`;
  const odds = known.get(key) ?? oddsOfWinning(counts, k);
  known.set(key, odds);
  return momentsOf(
    groups.flatMap((group, c) => group.map((value) => ({ value, probability: at(odds, c) / group.length }))),
  );
}

/** P(c wins) for each vote, from the number of responses with it. */
function oddsOfWinning(counts: readonly number[], k: number): number[] {
  const all = counts.reduce((sum, count) => sum + count, 0);
  // The first draw decides when all votes are one, and for two draws, which agree or tie.
  if (counts.length === 1 || k <= 2) return counts.map((count) => count / all);
  const bySize = new Map([...new Set(counts)].map((count) => [count, winning(counts, count, k)]));
  const raw = counts.map((count) => bySize.get(count) ?? 0);
  // One vote always wins, so the factor that all share is their sum.
  const sum = raw.reduce((a, b) => a + b, 0);
  return raw.map((value) => value / sum);
}

/** P(c wins) for a vote c with `own` responses, up to a factor that all votes share. */
function winning(counts: readonly number[], own: number, k: number): number {
  const all = counts.reduce((sum, count) => sum + count, 0);
  const others = counts.toSpliced(counts.indexOf(own), 1).map((count) => poisson((k * count) / all, k));
  const weights = poisson((k * own) / all, k);
  let sum = 0;
  for (let most = Math.ceil(k / counts.length); most < weights.length; most++)
    sum += at(weights, most) * firstAmongTied(others, most, k - most);
  return sum;
}

/**
 * E[1 / (1 + other votes with `most` draws); no other vote has more, and together they have `rest` draws], up to a
 * factor that all votes share. Element [ties · (rest + 1) + drawn] of the table belongs to so many ties and draws among
 * the votes seen so far.
 */
function firstAmongTied(others: readonly Float64Array[], most: number, rest: number): number {
  const width = rest + 1;
  const mostTies = Math.floor(rest / most);
  let table = new Float64Array((mostTies + 1) * width);
  table[0] = 1;
  for (const weights of others) {
    const next = new Float64Array(table.length);
    for (let ties = 0; ties <= mostTies; ties++) {
      for (let drawn = 0; drawn <= rest; drawn++) {
        const probability = at(table, ties * width + drawn);
        if (probability === 0) continue;
        const from = ties * width + drawn;
        const until = Math.min(most - 1, rest - drawn, weights.length - 1);
        for (let i = 0; i <= until; i++) next[from + i] = at(next, from + i) + probability * at(weights, i);
        if (ties < mostTies && drawn + most <= rest && most < weights.length) {
          const tied = from + width + most;
          next[tied] = at(next, tied) + probability * at(weights, most);
        }
      }
    }
    table = next;
  }
  let expectation = 0;
  for (let ties = 0; ties <= mostTies; ties++) expectation += at(table, ties * width + rest) / (ties + 1);
  return expectation;
}

/** Weights below this share of the largest one change no digit of the result. */
const NEGLIGIBLE = 1e-30;

/**
 * Numbers in proportion to P(N = 0, 1, … at most k) of a Poisson count, the likeliest 1. Ends where the rest is
 * negligible.
 */
function poisson(mean: number, k: number): Float64Array {
  const weights = new Float64Array(k + 1);
  const likeliest = Math.min(k, Math.floor(mean));
  weights[likeliest] = 1;
  for (let i = likeliest - 1; i >= 0; i--) weights[i] = (at(weights, i + 1) * (i + 1)) / mean;
  let end = likeliest + 1;
  for (; end <= k && at(weights, end - 1) > NEGLIGIBLE; end++) weights[end] = (at(weights, end - 1) * mean) / end;
  return weights.subarray(0, end);
}
