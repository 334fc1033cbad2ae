/**
 * How far the trainer's policy is from the one that sampled (verl: `compute_offpolicy_metrics`), with
 * l = log π_train − log π_rollout:
 *
 *   kl                mean of −l, an estimate of KL(rollout ‖ train);  k3_kl: mean of e^l − l − 1, not clamped
 *   *_ppl, *_log_ppl  exp(−mean log π) and −mean log π of a row, the mean over rows; a row without a valid token has
 *                     perplexity 1
 *   log_ppl_diff      log perplexity of train minus that of rollout: its mean, absolute mean, largest and smallest over
 *                     rows; ppl_ratio: the mean of its exponential
 *   chi2_token        mean of e^{2l} − 1;  chi2_seq: of e^{2Σl}, both with l or Σl clamped to ±20
 */
import { at } from '../../at.ts';
import { exp } from '../../math/exp.ts';
import { float64 } from '../float64.ts';
import { clampLogRatio, LOG_RATIO_LIMIT } from '../log-ratio.ts';
import type { Numbers } from '../ragged.ts';
import { largest, mean, smallest, type CorrectionColumns } from './statistics.ts';

export function driftMetrics(
  columns: CorrectionColumns,
  logProb_T: Numbers,
  rolloutLogProb_T: Numbers,
): Record<string, number> {
  const { sums_S, train_S, rollout_S, kl, k3, chi2 } = sumsOf(columns, float64(logProb_T), float64(rolloutLogProb_T));
  const difference_S = rollout_S.map((logProb, s) => logProb - at(train_S, s));
  return {
    training_ppl: mean(train_S.map((logProb) => exp(-logProb))),
    training_log_ppl: -mean(train_S),
    kl,
    k3_kl: k3,
    chi2_token: chi2 - 1,
    rollout_ppl: mean(rollout_S.map((logProb) => exp(-logProb))),
    rollout_log_ppl: -mean(rollout_S),
    log_ppl_diff: mean(difference_S),
    log_ppl_abs_diff: mean(difference_S.map(Math.abs)),
    log_ppl_diff_max: largest(difference_S),
    log_ppl_diff_min: smallest(difference_S),
    ppl_ratio: mean(difference_S.map(exp)),
    chi2_seq: mean(sums_S.map((sum) => exp(2 * clampLogRatio(sum)))) - 1,
  };
}

/** Sums in one pass: Σ l of each row, the mean log-probs of each row, and means over all valid tokens. */
function sumsOf(
  { rows, mask_T, counts_S, logRatio_T, ratio_T, valid }: CorrectionColumns,
  logProb_T: Float64Array,
  rolloutLogProb_T: Float64Array,
) {
  const sums_S = new Float64Array(counts_S.length);
  const train_S = new Float64Array(counts_S.length);
  const rollout_S = new Float64Array(counts_S.length);
  let [kl, k3, chi2] = [0, 0, 0];
  for (let s = 0; s < counts_S.length; s++) {
    let [sum, train, rollout] = [0, 0, 0];
    const end = at(rows.offsets_S1, s + 1);
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      const mask = mask_T[t] as number;
      if (mask === 0) continue;
      const logRatio = logRatio_T[t] as number;
      const ratio = ratio_T[t] as number;
      const unclamped = Math.abs(logRatio) <= LOG_RATIO_LIMIT ? ratio : exp(logRatio);
      kl -= logRatio * mask;
      k3 += (unclamped - logRatio - 1) * mask;
      chi2 += ratio * ratio * mask;
      sum += logRatio * mask;
      train += (logProb_T[t] as number) * mask;
      rollout += (rolloutLogProb_T[t] as number) * mask;
    }
    const count = at(counts_S, s) + 1e-8;
    sums_S[s] = sum;
    train_S[s] = train / count;
    rollout_S[s] = rollout / count;
  }
  const count = valid + 1e-8;
  return { sums_S, train_S, rollout_S, kl: kl / count, k3: k3 / count, chi2: chi2 / count };
}
