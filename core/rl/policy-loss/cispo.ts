/**
 * Clipped importance sampling (verl: `cispo`; MiniMax-M1 2025, arXiv 2506.13585): L = −sg(clip(ρ, 1 − low, 1 +
 * high))·A·log π. The clip bounds the weight but never removes a token's gradient.
 */
import { exp } from '../../math/exp.ts';
import { clamp } from '../clamp.ts';
import { clipBounds } from './clip-bounds.ts';
import { columnsOf, tokenMean } from './columns.ts';
import { clampLogRatio } from '../log-ratio.ts';
import { scratch } from '../scratch.ts';
import { reduceTokenLoss } from './reduce.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const cispo: PolicyLoss = { scope: 'token', needs: LOSS_NEEDS.cispo, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const [lowest, highest] = clipBounds(config);
  const { tokens, rows, mask_T, valid, logProb_T, oldLogProb_T, advantages_T, detachedLogProb_T } = columnsOf(input);
  const loss_T = scratch(tokens);
  const derivative_T = new Float64Array(tokens);
  let [changedTokens, kl] = [0, 0];
  for (let t = 0; t < tokens; t++) {
    const logRatio = clampLogRatio((detachedLogProb_T[t] as number) - (oldLogProb_T[t] as number));
    const ratio = exp(logRatio);
    const bounded = clamp(ratio, lowest, highest);
    const derivative = -bounded * (advantages_T[t] as number);
    loss_T[t] = derivative * (logProb_T[t] as number);
    derivative_T[t] = derivative;
    const mask = mask_T[t] as number;
    if (mask !== 0) {
      kl += -logRatio * mask;
      if (ratio !== bounded) changedTokens += mask;
    }
  }
  const metrics = {
    'actor/pg_clipfrac': tokenMean(changedTokens, valid),
    'actor/ppo_kl': tokenMean(kl, valid),
    'actor/pg_clipfrac_lower': 0,
  };
  return { ...reduceTokenLoss({ ...input, rows }, config, loss_T, derivative_T), metrics };
}
