/**
 * The best and the worst of k responses drawn with replacement from the n responses to a prompt (verl: `best@k`,
 * `worst@k` of `process_validation_metrics`), as the exact expectation and standard deviation over all n^k draws:
 *
 *   P(best ≤ x) = (#{i: x_i ≤ x} / n)^k,    P(worst ≥ x) = (#{i: x_i ≥ x} / n)^k
 *
 * verl estimates both with 1,000 seeded draws; the exact values replace its bootstrap. Because of the replacement
 * best@n is below the largest value. The unbiased pass@k of Chen et al. (2021, arXiv 2107.03374) draws without
 * replacement and is another number.
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { pow } from '../math/pow.ts';
import { square } from '../math/square.ts';
import type { Numbers } from './ragged.ts';

/** Moments of a random variable. */
export interface Moments {
  readonly mean: number;
  /** Standard deviation of the population. */
  readonly std: number;
}

/** @throws InvalidInputError without values, and for a k that is no whole number from 1. */
export function bestAtK(values: Numbers, k: number): Moments {
  return extremeAtK(values, k, (a, b) => a - b);
}

/** @throws InvalidInputError as bestAtK does. */
export function worstAtK(values: Numbers, k: number): Moments {
  return extremeAtK(values, k, (a, b) => b - a);
}

/** The last of k draws in this order. */
function extremeAtK(values: Numbers, k: number, order: (a: number, b: number) => number): Moments {
  if (values.length === 0) throw new InvalidInputError('best@k and worst@k need at least one value');
  if (!(Number.isSafeInteger(k) && k >= 1)) throw new InvalidInputError(`k is a whole number from 1, got ${k}`);
  const sorted = Array.from(values).sort(order);
  const outcomes: Outcome[] = [];
  let before = 0;
  for (let i = 0; i < sorted.length; i++) {
    // Equal values are one outcome, so that the spread of equal values is exactly 0.
    if (i + 1 < sorted.length && sorted[i + 1] === sorted[i]) continue;
    const upToHere = pow((i + 1) / sorted.length, k);
    outcomes.push({ value: at(sorted, i), probability: upToHere - before });
    before = upToHere;
  }
  return momentsOf(outcomes);
}

export interface Outcome {
  readonly value: number;
  readonly probability: number;
}

/** Mean and standard deviation of outcomes whose probabilities add up to 1. */
export function momentsOf(outcomes: readonly Outcome[]): Moments {
  const mean = outcomes.reduce((sum, { value, probability }) => sum + probability * value, 0);
  const variance = outcomes.reduce((sum, { value, probability }) => sum + probability * square(value - mean), 0);
  return { mean, std: Math.sqrt(variance) };
}
