/**
 * The clipped objective of PPO with a dual clip (verl: `vanilla`; Schulman et al. 2017, arXiv 1707.06347; dual clip:
 * Ye et al. 2020, arXiv 1912.09729). With ρ = exp(clamp(log π − log π_old, ±20)):
 *
 *   L = max(−A·ρ, −A·clip(ρ, 1 − low, 1 + high)), and where A < 0: L = min(L, −A·c)
 *
 * The gradient vanishes on tokens where a clip is active and where the log-ratio is ±20 or beyond.
 */
import { InvalidInputError } from '../../errors.ts';
import { exp } from '../../math/exp.ts';
import { clamp } from '../clamp.ts';
import { clipBounds, passedShare } from './clip-bounds.ts';
import { columnsOf, tokenMean } from './columns.ts';
import { clampLogRatio, LOG_RATIO_LIMIT } from '../log-ratio.ts';
import { scratch } from '../scratch.ts';
import { reduceTokenLoss } from './reduce.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const vanilla: PolicyLoss = { scope: 'token', needs: LOSS_NEEDS.vanilla, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const { clipRatioC } = config;
  if (!(clipRatioC > 1)) throw new InvalidInputError(`clip_ratio_c must be greater than 1, got ${clipRatioC}`);
  const [lowest, highest] = clipBounds(config);
  const { tokens, rows, mask_T, valid, logProb_T, oldLogProb_T, advantages_T } = columnsOf(input);
  const loss_T = scratch(tokens);
  const derivative_T = new Float64Array(tokens);
  let [clippedTokens, dualClippedTokens, kl] = [0, 0, 0];
  for (let t = 0; t < tokens; t++) {
    const advantage = advantages_T[t] as number;
    const difference = (logProb_T[t] as number) - (oldLogProb_T[t] as number);
    const logRatio = clampLogRatio(difference);
    const ratio = exp(logRatio);
    const unclipped = -advantage * ratio;
    const bounded = -advantage * clamp(ratio, lowest, highest);
    const clipped = bounded > unclipped;
    const ppo = clipped ? bounded : unclipped;
    const bound = -advantage * clipRatioC;
    const dualClipped = advantage < 0 && ppo > bound;
    loss_T[t] = dualClipped ? bound : ppo;
    const passes = !clipped && !dualClipped && Math.abs(difference) < LOG_RATIO_LIMIT;
    derivative_T[t] = passes ? unclipped * passedShare(ratio, lowest, highest) : 0;
    const mask = mask_T[t] as number;
    if (mask !== 0) {
      kl += -logRatio * mask;
      if (clipped) clippedTokens += mask;
      if (dualClipped) dualClippedTokens += mask;
    }
  }
  const metrics = {
    'actor/pg_clipfrac': tokenMean(clippedTokens, valid),
    'actor/ppo_kl': tokenMean(kl, valid),
    'actor/pg_clipfrac_lower': tokenMean(dualClippedTokens, valid),
  };
  return { ...reduceTokenLoss({ ...input, rows }, config, loss_T, derivative_T), metrics };
}
