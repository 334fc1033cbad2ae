/** What weights, rejection and drift read, and the statistics that they have in common. */
import { exp } from '../../math/exp.ts';
import { square } from '../../math/square.ts';
import { clamp } from '../clamp.ts';
import { at } from '../../at.ts';
import { scratch, scratchFloat64 } from '../scratch.ts';
import { InvalidInputError } from '../../errors.ts';
import { clampLogRatio } from '../log-ratio.ts';
import { requireTokens, tokenCount, type Numbers, type RaggedRows } from '../ragged.ts';
import { rowSums } from '../row-sums.ts';

/** A batch in the form that the loops read. */
export interface CorrectionColumns {
  readonly rows: RaggedRows;
  readonly mask_T: Float64Array;
  /** Valid tokens, of all rows and of each. */
  readonly valid: number;
  readonly counts_S: Float64Array;
  /** l = log π_train − log π_rollout. */
  readonly logRatio_T: Float64Array;
  /** exp(clamp(l, ±20)), which all parts read. */
  readonly ratio_T: Float64Array;
}

/** @throws InvalidInputError when no token is valid, or lengths differ */
export function correctionColumns(rows: RaggedRows, logRatio_T: Numbers): CorrectionColumns {
  const tokens = tokenCount(rows);
  requireTokens('mask', rows.mask_T, tokens);
  requireTokens('log-ratios', logRatio_T, tokens);
  const mask_T = scratchFloat64(rows.mask_T);
  const converted: RaggedRows = { offsets_S1: rows.offsets_S1, mask_T };
  const counts_S = rowSums(mask_T, converted);
  const valid = counts_S.reduce((sum, count) => sum + count, 0);
  if (valid === 0) throw new InvalidInputError('the rollout correction needs at least one valid token');
  const l_T = scratchFloat64(logRatio_T);
  const ratio_T = scratch(tokens);
  for (let t = 0; t < tokens; t++) ratio_T[t] = exp(clampLogRatio(l_T[t] as number));
  return { rows: converted, mask_T, valid, counts_S, logRatio_T: l_T, ratio_T };
}

/** Mean over the valid tokens of each row, with verl's 1e-8: 0 for a row without one. */
export function rowMeans(values_T: Float64Array, { rows, counts_S }: CorrectionColumns): Float64Array {
  return rowSums(values_T, rows).map((sum, s) => sum / (at(counts_S, s) + 1e-8));
}

export function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Unbiased; 0 for one value. */
export function deviation(values: Float64Array): number {
  if (values.length < 2) return 0;
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + square(value - middle), 0) / (values.length - 1));
}

export function largest(values: Float64Array): number {
  return values.reduce((max, value) => Math.max(max, value), -Infinity);
}

export function smallest(values: Float64Array): number {
  return values.reduce((min, value) => Math.min(min, value), Infinity);
}

/** Share of the values above a bound. */
export function shareAbove(values: Float64Array, bound: number): number {
  return values.reduce((count, value) => count + (value > bound ? 1 : 0), 0) / values.length;
}

export function shareBelow(values: Float64Array, bound: number): number {
  return values.reduce((count, value) => count + (value < bound ? 1 : 0), 0) / values.length;
}

/**
 * Statistics of values, each counted as often as its weight says: the mask of a token, or the valid tokens of a row.
 */
export interface WeightedStatistics {
  readonly mean: number;
  readonly max: number;
  readonly min: number;
  /** Shares outside [low, high]. */
  readonly above: number;
  readonly below: number;
  /**
   * Statistics of the values clamped to [clampLow, high]: mean, mean square, and standard deviation (0 for one token).
   */
  readonly clampedMean: number;
  readonly clampedSquare: number;
  readonly std: number;
}

/** Means and shares divide by `valid` + 1e-8, as in verl. A value of weight 0 has no effect. */
export function weightedStatistics(
  values: Float64Array,
  weights: Float64Array,
  valid: number,
  bounds: { readonly low: number; readonly high: number; readonly clampLow: number },
): WeightedStatistics {
  const { low, high, clampLow } = bounds;
  let sum = 0;
  let max = -Infinity;
  let min = Infinity;
  let above = 0;
  let below = 0;
  let clampedSum = 0;
  let clampedSquares = 0;
  for (let i = 0; i < values.length; i++) {
    const weight = weights[i] as number;
    if (weight === 0) continue;
    const value = values[i] as number;
    const clamped = clamp(value, clampLow, high);
    sum += value * weight;
    if (value > max) max = value;
    if (value < min) min = value;
    if (value > high) above += weight;
    if (value < low) below += weight;
    clampedSum += clamped * weight;
    clampedSquares += clamped * clamped * weight;
  }
  const count = valid + 1e-8;
  const clampedMean = clampedSum / count;
  const clampedSquare = clampedSquares / count;
  const std = valid > 1 ? Math.sqrt(Math.max(clampedSquare - square(clampedMean), 0)) : 0;
  return { mean: sum / count, max, min, above: above / count, below: below / count, clampedMean, clampedSquare, std };
}
