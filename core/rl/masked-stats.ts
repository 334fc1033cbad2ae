/**
 * Statistics over the positions with mask 1 (verl: `masked_sum`, `masked_mean`, `masked_var`, `masked_whiten`). A value
 * outside the mask has no effect, not even NaN. Every mean has verl's 1e-8 in the denominator, so that ratios agree
 * with verl to the last digit.
 */
import { InvalidInputError } from '../errors.ts';
import { float64, valueAt } from './float64.ts';
import type { Numbers } from './ragged.ts';

const EPSILON = 1e-8;

export function maskedSum(values: Numbers, mask: Numbers): number {
  const [x, m] = [float64(values), float64(mask)];
  let sum = 0;
  for (let i = 0; i < x.length; i++) {
    const weight = valueAt(m, i);
    if (weight !== 0) sum += valueAt(x, i) * weight;
  }
  return sum;
}

/** Σ x·m / (Σ m + 1e-8): 0 when no position is valid. */
export function maskedMean(values: Numbers, mask: Numbers): number {
  return maskedSum(values, mask) / (total(mask) + EPSILON);
}

/**
 * Mean square distance from the masked mean; unbiased: times k / (k − 1).
 *
 * @throws InvalidInputError for an unbiased one of fewer than two valid positions.
 */
export function maskedVar(values: Numbers, mask: Numbers, mean: number, unbiased = true): number {
  const [x, m] = [float64(values), float64(mask)];
  const count = total(m);
  if (unbiased && count < 2) {
    throw new InvalidInputError(`a variance needs at least two valid positions, got ${count}`, {
      hint: 'the batch has too few response tokens with mask 1: sample more, or longer, responses',
    });
  }
  let squares = 0;
  for (let i = 0; i < x.length; i++) {
    const weight = valueAt(m, i);
    if (weight === 0) continue;
    const distance = valueAt(x, i) - mean;
    squares += distance * distance * weight;
  }
  const variance = squares / (count + EPSILON);
  return unbiased ? (variance * count) / (count - 1) : variance;
}

/** (x − mean) / sqrt(var + 1e-8) at every position, also where the mask is 0; `shiftMean` false adds the mean back. */
export function maskedWhiten(values: Numbers, mask: Numbers, shiftMean = true): Float64Array {
  const [x, m] = [float64(values), float64(mask)];
  const mean = maskedMean(x, m);
  const scale = 1 / Math.sqrt(maskedVar(x, m, mean) + EPSILON);
  const offset = shiftMean ? 0 : mean;
  const whitened = new Float64Array(x.length);
  for (let i = 0; i < whitened.length; i++) whitened[i] = (valueAt(x, i) - mean) * scale + offset;
  return whitened;
}

function total(mask: Numbers): number {
  const m = float64(mask);
  let sum = 0;
  for (let i = 0; i < m.length; i++) sum += valueAt(m, i);
  return sum;
}
