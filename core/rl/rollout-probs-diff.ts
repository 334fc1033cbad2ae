/**
 * Differences between the trainer's and the sampler's probabilities of the sampled tokens (verl:
 * `calculate_debug_metrics`). Large values mean that the two engines disagree and that updates are off-policy
 * unnoticed.
 */
import { exp } from '../math/exp.ts';
import { requireTokens } from './ragged.ts';
import type { Numbers } from './ragged.ts';

/** Sums over the valid tokens in two walks, without lists of all tokens. */
export function rolloutProbsDiff(
  logProb_T: Numbers,
  rolloutLogProb_T: Numbers,
  mask_T: Numbers,
): Record<string, number> {
  const tokens = mask_T.length;
  requireTokens('log-probs', logProb_T, tokens);
  requireTokens('rollout log-probs', rolloutLogProb_T, tokens);
  const walk = (visit: (trainer: number, rollout: number) => void): void => {
    for (let t = 0; t < tokens; t++)
      if (mask_T[t] !== 0) visit(exp(logProb_T[t] as number), exp(rolloutLogProb_T[t] as number));
  };
  const sums = { count: 0, trainer: 0, rollout: 0, difference: 0 };
  let largest = 0;
  walk((trainer, rollout) => {
    const difference = Math.abs(trainer - rollout);
    sums.count += 1;
    sums.trainer += trainer;
    sums.rollout += rollout;
    sums.difference += difference;
    largest = Math.max(largest, difference);
  });
  const mean = {
    trainer: sums.trainer / sums.count,
    rollout: sums.rollout / sums.count,
    difference: sums.difference / sums.count,
  };
  const squares = { trainer: 0, rollout: 0, both: 0, difference: 0 };
  walk((trainer, rollout) => {
    const [ofTrainer, ofRollout] = [trainer - mean.trainer, rollout - mean.rollout];
    const ofDifference = Math.abs(trainer - rollout) - mean.difference;
    squares.trainer += ofTrainer * ofTrainer;
    squares.rollout += ofRollout * ofRollout;
    squares.both += ofTrainer * ofRollout;
    squares.difference += ofDifference * ofDifference;
  });
  /** Unbiased; NaN for fewer than two values. */
  const covariance = (sum: number): number => (sums.count < 2 ? NaN : sum / (sums.count - 1));
  const r = covariance(squares.both) / Math.sqrt(covariance(squares.trainer) * covariance(squares.rollout));
  return {
    'training/rollout_probs_diff_valid': Number(sums.count > 0),
    'training/rollout_probs_diff_max': sums.count > 0 ? largest : NaN,
    'training/rollout_probs_diff_mean': mean.difference,
    'training/rollout_probs_diff_std': Math.sqrt(covariance(squares.difference)),
    'training/rollout_actor_probs_pearson_corr': Math.min(1, Math.max(-1, r)),
  };
}
