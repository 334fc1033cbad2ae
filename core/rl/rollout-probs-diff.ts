/**
 * Differences between the trainer's and the sampler's probabilities of the sampled tokens (verl:
 * `calculate_debug_metrics`). Large values mean that the two engines disagree and that updates are off-policy
 * unnoticed.
 */
import { at } from '../at.ts';
import { exp } from '../math/exp.ts';
import type { Numbers } from './ragged.ts';

export function rolloutProbsDiff(
  logProb_T: Numbers,
  rolloutLogProb_T: Numbers,
  mask_T: Numbers,
): Record<string, number> {
  const valid = Array.from({ length: mask_T.length }, (_, t) => t).filter((t) => at(mask_T, t) !== 0);
  const trainer = valid.map((t) => exp(at(logProb_T, t)));
  const rollout = valid.map((t) => exp(at(rolloutLogProb_T, t)));
  const differences = trainer.map((p, i) => Math.abs(p - at(rollout, i)));
  return {
    'training/rollout_probs_diff_valid': Number(valid.length > 0),
    'training/rollout_probs_diff_max': differences.reduce((a, b) => Math.max(a, b), valid.length > 0 ? 0 : NaN),
    'training/rollout_probs_diff_mean': mean(differences),
    'training/rollout_probs_diff_std': Math.sqrt(covariance(differences, differences)),
    'training/rollout_actor_probs_pearson_corr': correlation(trainer, rollout),
  };
}

function correlation(a: readonly number[], b: readonly number[]): number {
  const r = covariance(a, b) / Math.sqrt(covariance(a, a) * covariance(b, b));
  return Math.min(1, Math.max(-1, r));
}

/** Unbiased; NaN for fewer than two values. */
function covariance(a: readonly number[], b: readonly number[]): number {
  if (a.length < 2) return NaN;
  const [meanA, meanB] = [mean(a), mean(b)];
  return a.reduce((sum, value, i) => sum + (value - meanA) * (at(b, i) - meanB), 0) / (a.length - 1);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
