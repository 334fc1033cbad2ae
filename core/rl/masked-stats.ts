/**
 * Statistics over the positions with mask 1 (verl: `masked_sum`, `masked_mean`, `masked_var`, `masked_whiten`). A value
 * outside the mask has no effect, not even NaN. Every mean has verl's 1e-8 in the denominator, so that ratios agree
 * with verl to the last digit.
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import type { Numbers } from './ragged.ts';

const EPSILON = 1e-8;

export function maskedSum(values: Numbers, mask: Numbers): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) if (at(mask, i) !== 0) sum += at(values, i) * at(mask, i);
  return sum;
}

/** Σ x·m / (Σ m + 1e-8): 0 when no position is valid. */
export function maskedMean(values: Numbers, mask: Numbers): number {
  return maskedSum(values, mask) / (total(mask) + EPSILON);
}

/** Mean square distance from the masked mean; unbiased: times k / (k − 1), which needs two valid positions. */
export function maskedVar(values: Numbers, mask: Numbers, unbiased = true): number {
  const mean = maskedMean(values, mask);
  const squares = Float64Array.from(values, (value) => (value - mean) ** 2);
  const variance = maskedMean(squares, mask);
  if (!unbiased) return variance;
  const count = total(mask);
  if (count < 2) throw new InvalidInputError(`a variance needs at least two valid positions, got ${count}`);
  return (variance * count) / (count - 1);
}

/** (x − mean) / sqrt(var + 1e-8) at every position, also where the mask is 0; `shiftMean` false adds the mean back. */
export function maskedWhiten(values: Numbers, mask: Numbers, shiftMean = true): Float64Array {
  const mean = maskedMean(values, mask);
  const scale = 1 / Math.sqrt(maskedVar(values, mask) + EPSILON);
  return Float64Array.from(values, (value) => (value - mean) * scale + (shiftMean ? 0 : mean));
}

function total(mask: Numbers): number {
  let sum = 0;
  for (let i = 0; i < mask.length; i++) sum += at(mask, i);
  return sum;
}
