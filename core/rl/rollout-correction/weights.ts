/**
 * Importance weights of the trainer's policy against the one that sampled (verl: `compute_rollout_correction_weights`),
 * with l = log π_train − log π_rollout:
 *
 *   token      w = exp(clamp(l, ±20))
 *   sequence   w = exp(clamp(Σ_t l, ±20)), on all tokens of the row
 *
 * One bound truncates from above only; two bounds set weights outside them to 0 (IcePop). Then `batchNormalize` divides
 * by the mean weight, of tokens or of rows. The weights are constants: no gradient passes through them.
 *
 * Odd in verl's metrics: at level `sequence`, max, min and the fractions are of unclamped products and count rows
 * without a valid token (weight 1); `seq_*` are means over rows where such a row counts as 0; max and min of tokens are
 * of weights after truncation, the fractions of weights before. Without a lower bound, "low" means below 1 / upper.
 */
import { at } from '../../at.ts';
import { exp } from '../../math/exp.ts';
import { log } from '../../math/log.ts';
import { square } from '../../math/square.ts';
import { clampLogRatio, LOG_RATIO_LIMIT } from '../log-ratio.ts';
import { rowSums } from '../row-sums.ts';
import { scratch } from '../scratch.ts';
import type { WeightOptions } from './options.ts';
import {
  deviation,
  largest,
  mean,
  shareAbove,
  shareBelow,
  smallest,
  weightedStatistics,
  type CorrectionColumns,
} from './statistics.ts';

export interface ImportanceWeights {
  /** 0 where the mask is 0. */
  readonly weights_T: Float64Array;
  readonly metrics: Readonly<Record<string, number>>;
}

export function importanceWeights(columns: CorrectionColumns, options: WeightOptions): ImportanceWeights {
  const rowLogRatio_S = options.level === 'sequence' ? rowSums(columns.logRatio_T, columns.rows) : undefined;
  const bounded = boundedWeights(columns, rowLogRatio_S, options.bounds);
  const { weights_T } = bounded;
  const metrics = weightMetrics(columns, bounded, rowLogRatio_S, options);
  if (!options.batchNormalize) return { weights_T, metrics };
  const factor = meanWeight(columns, bounded, options);
  if (!(factor > 1e-8)) return { weights_T, metrics: { ...metrics, rollout_is_batch_norm_factor: 1 } };
  for (let t = 0; t < weights_T.length; t++) weights_T[t] = (weights_T[t] as number) / factor;
  return { weights_T, metrics: { ...metrics, rollout_is_batch_norm_factor: factor } };
}

interface BoundedWeights {
  readonly weights_T: Float64Array;
  /** Means over the valid tokens of each row, before and after the bounds. */
  readonly rawMeans_S: Float64Array;
  readonly means_S: Float64Array;
  /** Shares of valid tokens with a weight above the upper, and below the lower bound. */
  readonly above: number;
  readonly below: number;
}

/** Makes in one pass the weights, their bounds, and what the metrics need of both. */
function boundedWeights(
  { rows, mask_T, ratio_T, counts_S, valid }: CorrectionColumns,
  rowLogRatio_S: Float64Array | undefined,
  bounds: WeightOptions['bounds'],
): BoundedWeights {
  const { upper, lower } = bounds;
  const low = lowBound(bounds);
  const weights_T = scratch(mask_T.length).fill(0);
  const rawMeans_S = new Float64Array(counts_S.length);
  const means_S = new Float64Array(counts_S.length);
  let [above, below] = [0, 0];
  for (let s = 0; s < counts_S.length; s++) {
    const ofRow = rowLogRatio_S === undefined ? 0 : exp(clampLogRatio(at(rowLogRatio_S, s)));
    const end = at(rows.offsets_S1, s + 1);
    let [rawSum, sum] = [0, 0];
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      const mask = mask_T[t] as number;
      if (mask === 0) continue;
      const raw = (rowLogRatio_S === undefined ? (ratio_T[t] as number) : ofRow) * mask;
      let weight = raw;
      // With one bound below 1 a weight can be both.
      if (raw < low) {
        below += mask;
        if (lower !== undefined) weight = 0;
      }
      if (raw > upper) {
        above += mask;
        weight = lower === undefined ? upper : 0;
      }
      weights_T[t] = weight;
      rawSum += raw * mask;
      sum += weight * mask;
    }
    const count = at(counts_S, s) + 1e-8;
    rawMeans_S[s] = rawSum / count;
    means_S[s] = sum / count;
  }
  return { weights_T, rawMeans_S, means_S, above: above / (valid + 1e-8), below: below / (valid + 1e-8) };
}

function lowBound({ lower, upper }: WeightOptions['bounds']): number {
  return lower ?? 1 / upper;
}

function weightMetrics(
  columns: CorrectionColumns,
  { weights_T, rawMeans_S, means_S, above, below }: BoundedWeights,
  rowLogRatio_S: Float64Array | undefined,
  { bounds }: WeightOptions,
): Record<string, number> {
  const { upper } = bounds;
  const low = lowBound(bounds);
  const used = weightedStatistics(weights_T, columns.mask_T, columns.valid, { low, high: upper, clampLow: 0 });
  const extremes =
    rowLogRatio_S === undefined
      ? { max: used.max, min: used.min, above, below }
      : sequenceExtremes(rowLogRatio_S, low, upper);
  return {
    rollout_is_mean: used.mean,
    rollout_is_max: extremes.max,
    rollout_is_min: extremes.min,
    rollout_is_ratio_fraction_high: extremes.above,
    rollout_is_ratio_fraction_low: extremes.below,
    rollout_is_std: used.std,
    rollout_is_eff_sample_size: effectiveSampleSize(used.clampedMean, used.clampedSquare),
    rollout_is_seq_mean: mean(means_S),
    rollout_is_seq_std: deviation(means_S),
    rollout_is_seq_max: largest(means_S),
    rollout_is_seq_min: smallest(means_S),
    rollout_is_seq_max_deviation: largest(means_S.map((weight) => Math.abs(weight - 1))),
    rollout_is_seq_fraction_high: shareAbove(rawMeans_S, upper),
    rollout_is_seq_fraction_low: shareBelow(rawMeans_S, low),
    ...(bounds.lower === undefined ? {} : { rollout_is_oob_ratio: above + below }),
  };
}

function sequenceExtremes(rowLogRatio_S: Float64Array, low: number, upper: number) {
  return {
    max: exp(Math.min(largest(rowLogRatio_S), LOG_RATIO_LIMIT)),
    min: exp(smallest(rowLogRatio_S)),
    above: shareAbove(rowLogRatio_S, log(upper)),
    below: shareBelow(rowLogRatio_S, log(low)),
  };
}

/** 1 / mean((w / mean w)²), a share of the tokens. 0 when every weight is 0; verl divides by zero there. */
function effectiveSampleSize(meanOfWeights: number, meanSquare: number): number {
  return meanSquare === 0 ? 0 : square(meanOfWeights + 1e-8) / meanSquare;
}

function meanWeight(
  { counts_S, valid, rows }: CorrectionColumns,
  { weights_T, means_S }: BoundedWeights,
  { level }: WeightOptions,
): number {
  if (level === 'token') return rowSums(weights_T, rows).reduce((sum, weight) => sum + weight, 0) / (valid + 1e-8);
  return mean(means_S.filter((_, s) => at(counts_S, s) > 0));
}
