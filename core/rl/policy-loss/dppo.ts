/**
 * Divergence proximal policy optimisation (verl: `dppo_tv`, `dppo_kl`; arXiv 2602.04879): instead of clipping the
 * ratio, a token is left out when its probability has moved too far in the direction that its advantage asks for.
 *
 *   L = −A·sg(min(ρ, C))·log π·v
 *   dppo_tv   v = [π − π_old ≤ high] where A > 0, else [π − π_old ≥ −low]
 *   dppo_kl   v = [d ≤ high or π ≤ π_old] where A > 0, else [d ≤ low or π ≥ π_old], with the divergence of the sampled
 *             token against all others,  d = π_old·log(π_old/π) + (1 − π_old)·log((1 − π_old + 1e-8)/(1 − π + 1e-8))
 *
 * low and high are `clip_ratio_low` and `clip_ratio_high`, here divergences. C is `clip_ratio_c`: verl's code falls
 * back to 20, but its YAML always gives 3. `pg_clipfrac` is the share of tokens that are left out.
 */
import { exp } from '../../math/exp.ts';
import { log } from '../../math/log.ts';
import { clamp } from '../clamp.ts';
import { columnsOf, tokenMean } from './columns.ts';
import { clampLogRatio } from '../log-ratio.ts';
import { scratch } from '../scratch.ts';
import { reduceTokenLoss } from './reduce.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const dppoTv: PolicyLoss = {
  scope: 'token',
  needs: LOSS_NEEDS.dppo_tv,
  compute: (input, config) => compute(input, config, totalVariationAllows),
};

export const dppoKl: PolicyLoss = {
  scope: 'token',
  needs: LOSS_NEEDS.dppo_kl,
  compute: (input, config) => compute(input, config, binaryKlAllows),
};

/**
 * May a token still be trained whose probability has moved in the direction of its advantage? `bound` is the divergence
 * allowed. A token that moved the other way always may.
 */
type Rule = (logProb: number, oldLogProb: number, bound: number) => boolean;

const totalVariationAllows: Rule = (logProb, oldLogProb, bound) => Math.abs(exp(logProb) - exp(oldLogProb)) <= bound;

const binaryKlAllows: Rule = (logProb, oldLogProb, bound) => {
  const p = exp(logProb);
  const old = exp(oldLogProb);
  const others = (1 - old) * log((1 - old + 1e-8) / (1 - p + 1e-8));
  return old * (oldLogProb - logProb) + others <= bound;
};

function compute(input: PolicyLossInput, config: PolicyLossConfig, allows: Rule): PolicyLossResult {
  const { tokens, rows, mask_T, valid, logProb_T, oldLogProb_T, advantages_T, detachedLogProb_T } = columnsOf(input);
  const { clipRatioLow: low = config.clipRatio, clipRatioHigh: high = config.clipRatio, clipRatioC } = config;
  const loss_T = scratch(tokens);
  const derivative_T = new Float64Array(tokens);
  let [leftOut, truncated, kl] = [0, 0, 0];
  for (let t = 0; t < tokens; t++) {
    const advantage = advantages_T[t] as number;
    const oldLogProb = oldLogProb_T[t] as number;
    const detached = detachedLogProb_T[t] as number;
    const logRatio = clampLogRatio(detached - oldLogProb);
    const ratio = exp(logRatio);
    const movedBack = advantage > 0 ? detached <= oldLogProb : detached >= oldLogProb;
    const allowed = movedBack || allows(detached, oldLogProb, advantage > 0 ? high : low);
    // Multiplied, not replaced by 0: as in the reference, a NaN outside the mask shows in the per-sequence modes.
    const derivative = -advantage * clamp(ratio, 0, clipRatioC) * (allowed ? 1 : 0);
    loss_T[t] = derivative * (logProb_T[t] as number);
    derivative_T[t] = derivative;
    const mask = mask_T[t] as number;
    if (mask !== 0) {
      kl += -logRatio * mask;
      if (!allowed) leftOut += mask;
      else if (ratio > clipRatioC) truncated += mask;
    }
  }
  const metrics = {
    'actor/pg_clipfrac': tokenMean(leftOut, valid),
    'actor/ppo_kl': tokenMean(kl, valid),
    'actor/pg_clipfrac_lower': tokenMean(truncated, valid),
  };
  return { ...reduceTokenLoss({ ...input, rows }, config, loss_T, derivative_T), metrics };
}
