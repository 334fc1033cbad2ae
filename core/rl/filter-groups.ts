/**
 * Selects the prompt groups for training.
 *
 * - A group needs two samples with a score; a group of one needs its own.
 * - DAPO's dynamic sampling (Yu et al. 2025, arXiv 2503.14476; verl: `algorithm.filter_groups`): a group whose samples
 * all have the same value of the metric gives no learning signal. The spread is numpy's population std, to its last
 * bit, because the reference compares it with exactly 0: three times 0.1 has a std of 1.4e-17 and stays.
 */
import { at } from '../at.ts';
import { square } from '../math/square.ts';

/** A group needs two valid samples for an advantage. */
const smallestGroup = 2;

/**
 * Why the samples of a prompt are not trained on; undefined when they are. `values`: of the metric, null for a sample
 * without a score. `metric`: the name of the metric in which the samples must differ; undefined: they need not differ.
 */
export function reasonToFilter(values: readonly (number | null)[], metric?: string): string | undefined {
  const valid = values.filter((value) => value !== null);
  if (valid.length < Math.min(smallestGroup, values.length))
    return `${valid.length} of ${values.length} samples are valid`;
  if (metric === undefined || valid.length < 2 || populationStd(valid) !== 0) return undefined;
  return `all samples have the same ${metric}, ${at(valid, 0)}`;
}

function populationStd(values: readonly number[]): number {
  const mean = pairwiseSum(values) / values.length;
  return Math.sqrt(pairwiseSum(values.map((value) => square(value - mean))) / values.length);
}

/** numpy's order of summation: plain below 8, eight running sums up to 128, halves beyond. */
function pairwiseSum(values: readonly number[]): number {
  const n = values.length;
  if (n < 8) return values.reduce((sum, value) => sum + value, 0);
  if (n > 128) {
    const half = (n >> 1) - ((n >> 1) % 8);
    return pairwiseSum(values.slice(0, half)) + pairwiseSum(values.slice(half));
  }
  const r = values.slice(0, 8);
  const whole = n - (n % 8);
  for (let i = 8; i < whole; i++) r[i % 8] = at(r, i % 8) + at(values, i);
  const sum = at(r, 0) + at(r, 1) + (at(r, 2) + at(r, 3)) + (at(r, 4) + at(r, 5) + (at(r, 6) + at(r, 7)));
  return values.slice(whole).reduce((total, value) => total + value, sum);
}
