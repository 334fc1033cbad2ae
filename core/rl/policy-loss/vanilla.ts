/**
 * The clipped objective of PPO with a dual clip (verl: `vanilla`; Schulman et al. 2017, arXiv 1707.06347; dual clip:
 * Ye et al. 2020, arXiv 1912.09729). With ρ = exp(clamp(log π − log π_old, ±20)):
 *
 *   L = max(−A·ρ, −A·clip(ρ, 1 − low, 1 + high)), and where A < 0: L = min(L, −A·c)
 *
 * The gradient vanishes on tokens where a clip is active and where the log-ratio is beyond ±20.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import { maskedMean } from '../masked-stats.ts';
import { requireTokens, tokenCount } from '../ragged.ts';
import { clipBounds } from './clip-bounds.ts';
import { clampedLogRatio, clampPasses, negated } from './log-ratio.ts';
import { reduceTokenLoss } from './reduce.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const vanilla: PolicyLoss = { scope: 'token', compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  if (!(config.clipRatioC > 1))
    throw new InvalidInputError(`clip_ratio_c must be greater than 1, got ${config.clipRatioC}`);
  const { advantages_T, rows } = input;
  requireTokens('log-probs', input.logProb_T, tokenCount(rows));
  const bounds = clipBounds(config);
  const logRatio_T = clampedLogRatio(input);
  const loss_T = new Float64Array(logRatio_T.length);
  const derivative_T = new Float64Array(logRatio_T.length);
  const clipped_T = new Float64Array(logRatio_T.length);
  const dualClipped_T = new Float64Array(logRatio_T.length);
  for (let t = 0; t < loss_T.length; t++) {
    const token = tokenLoss(at(advantages_T, t), Math.exp(at(logRatio_T, t)), bounds, config.clipRatioC);
    loss_T[t] = token.loss;
    derivative_T[t] = token.dLogRatio * clampPasses(input, t);
    clipped_T[t] = Number(token.clipped);
    dualClipped_T[t] = Number(token.dualClipped);
  }
  const metrics = {
    'actor/pg_clipfrac': maskedMean(clipped_T, rows.mask_T),
    'actor/ppo_kl': maskedMean(negated(logRatio_T), rows.mask_T),
    'actor/pg_clipfrac_lower': maskedMean(dualClipped_T, rows.mask_T),
  };
  return { ...reduceTokenLoss(input, config, loss_T, derivative_T), metrics };
}

/** Loss and d loss / d log ratio of one token. */
function tokenLoss(advantage: number, ratio: number, [lowest, highest]: readonly [number, number], c: number) {
  const unclipped = -advantage * ratio;
  const bounded = -advantage * Math.min(Math.max(ratio, lowest), highest);
  const ppo = Math.max(unclipped, bounded);
  const bound = -advantage * c;
  const clipped = bounded > unclipped;
  const dualClipped = advantage < 0 && ppo > bound;
  return {
    loss: advantage < 0 ? Math.min(ppo, bound) : ppo,
    dLogRatio: clipped || dualClipped ? 0 : unclipped,
    clipped,
    dualClipped,
  };
}
