/**
 * Clip-Cov (verl: `clip_cov`; Cui et al. 2025, "The entropy mechanism", arXiv 2505.22617): PPO's clip, and in addition
 * a few tokens are dropped that would reduce the entropy most. With means over the valid tokens at hand,
 *
 *   cov = (A − mean A)·(log π − mean log π)
 *   L = max(−A·ρ, −A·clip(ρ, 1 − low, 1 + high)), and 0 for k = max(⌊clip_cov_ratio·n⌋, 1) tokens, drawn at random
 *   among those with clip_cov_lb < cov < clip_cov_ub whose ratio is not clipped
 *
 * There is no dual clip, and the log-ratio is not clamped. `pg_clipfrac` counts the dropped tokens only, not the
 * clipped ones.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import { exp } from '../../math/exp.ts';
import { permute } from '../permutation.ts';
import { clamp } from '../clamp.ts';
import { clipBounds, passedShare } from './clip-bounds.ts';
import { columnsOf, needed, tokenMean, type LossColumns } from './columns.ts';
import { scratch } from '../scratch.ts';
import { reduceTokenLoss } from './reduce.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const clipCov: PolicyLoss = { scope: 'mini-batch', needs: LOSS_NEEDS.clip_cov, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const ratioOfTokens = config.clipCovRatio ?? 0.0002;
  if (!(ratioOfTokens > 0)) {
    throw new InvalidInputError(`clip_cov_ratio must be greater than 0, got ${ratioOfTokens}`);
  }
  const [lowest, highest] = clipBounds(config);
  const columns = columnsOf(input);
  const { tokens, mask_T, valid, logProb_T, oldLogProb_T, advantages_T, detachedLogProb_T } = columns;
  const loss_T = scratch(tokens);
  const derivative_T = new Float64Array(tokens);
  let [kl, advantages, logProbs] = [0, 0, 0];
  for (let t = 0; t < tokens; t++) {
    const advantage = advantages_T[t] as number;
    const logRatio = (logProb_T[t] as number) - (oldLogProb_T[t] as number);
    const ratio = exp(logRatio);
    const unclipped = -advantage * ratio;
    const bounded = -advantage * clamp(ratio, lowest, highest);
    const clipped = bounded > unclipped;
    loss_T[t] = clipped ? bounded : unclipped;
    derivative_T[t] = clipped ? 0 : unclipped * passedShare(ratio, lowest, highest);
    const mask = mask_T[t] as number;
    if (mask !== 0) {
      kl += -logRatio * mask;
      advantages += advantage * mask;
      logProbs += (detachedLogProb_T[t] as number) * mask;
    }
  }
  const means = { advantage: tokenMean(advantages, valid), logProb: tokenMean(logProbs, valid) };
  const candidates = candidatesOf(columns, means, config);
  const count = Math.min(Math.max(Math.trunc(ratioOfTokens * valid), 1), candidates.length);
  let dropped = 0;
  for (const index of firstOfOrder(candidates.length, count, config)) {
    const t = at(candidates, index);
    loss_T[t] = 0;
    derivative_T[t] = 0;
    dropped += at(mask_T, t);
  }
  const metrics = { 'actor/pg_clipfrac': tokenMean(dropped, valid), 'actor/ppo_kl': tokenMean(kl, valid) };
  return { ...reduceTokenLoss({ ...input, rows: columns.rows }, config, loss_T, derivative_T), metrics };
}

/** Valid tokens, in order, that may be dropped. */
function candidatesOf(
  { tokens, mask_T, oldLogProb_T, advantages_T, detachedLogProb_T }: LossColumns,
  means: { readonly advantage: number; readonly logProb: number },
  config: PolicyLossConfig,
): number[] {
  const { clipCovLb = 1, clipCovUb = 5 } = config;
  const [lowest, highest] = clipBounds(config);
  const candidates: number[] = [];
  for (let t = 0; t < tokens; t++) {
    if ((mask_T[t] as number) === 0) continue;
    const advantage = advantages_T[t] as number;
    const logProb = detachedLogProb_T[t] as number;
    const covariance = (advantage - means.advantage) * (logProb - means.logProb);
    if (!(covariance > clipCovLb && covariance < clipCovUb)) continue;
    const ratio = exp(logProb - (oldLogProb_T[t] as number));
    const clipped = -advantage * clamp(ratio, lowest, highest) > -advantage * ratio;
    if (!clipped) candidates.push(t);
  }
  return candidates;
}

function firstOfOrder(size: number, count: number, { choices, seed }: PolicyLossConfig): number[] {
  const order = choices?.permutation?.(size);
  if (order !== undefined) return Array.from({ length: count }, (_, i) => at(order, i));
  const key = needed(seed, 'clip_cov', 'seed');
  return Array.from({ length: count }, (_, i) => permute(i, size, key));
}
