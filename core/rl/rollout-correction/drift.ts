/**
 * How far the trainer's policy is from the one that sampled (verl: `compute_offpolicy_metrics`), with
 * l = log π_train − log π_rollout:
 *
 *   kl                mean of −l, an estimate of KL(rollout ‖ train);  k3_kl: mean of e^l − l − 1, not clamped
 *   *_ppl, *_log_ppl  exp(−mean log π) and −mean log π of a row, the mean over rows; a row without a valid token has
 *                     perplexity 1
 *   log_ppl_diff      log perplexity of train minus that of rollout: its mean, absolute mean, largest and smallest over rows;
 *                     ppl_ratio: the mean of its exponential
 *   chi2_token        mean of e^{2l} − 1;  chi2_seq: of e^{2Σl}, both with l or Σl clamped to ±20
 */
import { at } from '../../at.ts';
import { float64 } from '../float64.ts';
import { clampLogRatio, LOG_RATIO_LIMIT } from '../log-ratio.ts';
import type { Numbers } from '../ragged.ts';
import { rowSums } from '../row-sums.ts';
import { largest, mean, rowMeans, smallest, type CorrectionColumns } from './statistics.ts';

export function driftMetrics(
  columns: CorrectionColumns,
  logProb_T: Numbers,
  rolloutLogProb_T: Numbers,
): Record<string, number> {
  const train_S = rowMeans(float64(logProb_T), columns);
  const rollout_S = rowMeans(float64(rolloutLogProb_T), columns);
  const difference_S = rollout_S.map((logProb, s) => logProb - at(train_S, s));
  const sums_S = rowSums(columns.logRatio_T, columns.rows);
  return {
    training_ppl: mean(train_S.map((logProb) => Math.exp(-logProb))),
    training_log_ppl: -mean(train_S),
    ...tokenDrift(columns),
    rollout_ppl: mean(rollout_S.map((logProb) => Math.exp(-logProb))),
    rollout_log_ppl: -mean(rollout_S),
    log_ppl_diff: mean(difference_S),
    log_ppl_abs_diff: mean(difference_S.map(Math.abs)),
    log_ppl_diff_max: largest(difference_S),
    log_ppl_diff_min: smallest(difference_S),
    ppl_ratio: mean(difference_S.map(Math.exp)),
    chi2_seq: mean(sums_S.map((sum) => Math.exp(2 * clampLogRatio(sum)))) - 1,
  };
}

function tokenDrift({ mask_T, logRatio_T, ratio_T, valid }: CorrectionColumns) {
  let kl = 0;
  let k3 = 0;
  let chi2 = 0;
  for (let t = 0; t < logRatio_T.length; t++) {
    const mask = mask_T[t] as number;
    if (mask === 0) continue;
    const logRatio = logRatio_T[t] as number;
    const ratio = ratio_T[t] as number;
    const unclamped = Math.abs(logRatio) <= LOG_RATIO_LIMIT ? ratio : Math.exp(logRatio);
    kl -= logRatio * mask;
    k3 += (unclamped - logRatio - 1) * mask;
    chi2 += ratio * ratio * mask;
  }
  const count = valid + 1e-8;
  return { kl: kl / count, k3_kl: k3 / count, chi2_token: chi2 / count - 1 };
}
