/**
 * Clipped importance sampling (verl: `cispo`; MiniMax-M1 2025, arXiv 2506.13585): L = −sg(clip(ρ, 1 − low, 1 + high))·A·log π.
 * The clip bounds the weight but never removes a token's gradient.
 */
import { at } from '../../at.ts';
import { maskedMean } from '../masked-stats.ts';
import { clipBounds } from './clip-bounds.ts';
import { clampedLogRatio, negated } from './log-ratio.ts';
import { reduceTokenLoss } from './reduce.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const cispo: PolicyLoss = { scope: 'token', compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const [lowest, highest] = clipBounds(config);
  const logRatio_T = clampedLogRatio(input);
  const ratio_T = logRatio_T.map(Math.exp);
  const bounded_T = ratio_T.map((ratio) => Math.min(Math.max(ratio, lowest), highest));
  const derivative_T = bounded_T.map((weight, t) => -weight * at(input.advantages_T, t));
  const loss_T = derivative_T.map((derivative, t) => derivative * at(input.logProb_T, t));
  const metrics = {
    'actor/pg_clipfrac': maskedMean(
      ratio_T.map((ratio, t) => Number(ratio !== bounded_T[t])),
      input.rows.mask_T,
    ),
    'actor/ppo_kl': maskedMean(negated(logRatio_T), input.rows.mask_T),
    'actor/pg_clipfrac_lower': 0,
  };
  return { ...reduceTokenLoss(input, config, loss_T, derivative_T), metrics };
}
