/**
 * Group sequence policy optimisation (verl: `gspo`; Zheng et al. 2025, arXiv 2507.18071): PPO's clip on the ratio of
 * whole sequences. With s = mean_t (log π − log π_old) of the row, a token's ratio is ρ = exp(min(log π − sg(log π) +
 * sg(s), 10)): all tokens of a row have the same value, and each gets its own gradient. Aggregation is always
 * seq-mean-token-mean.
 */
import { exp } from '../../math/exp.ts';
import { clamp } from '../clamp.ts';
import { at } from '../../at.ts';
import { rowCount } from '../ragged.ts';
import { clipBounds, passedShare } from './clip-bounds.ts';
import { columnsOf, tokenMean, type LossColumns } from './columns.ts';
import { scratch } from '../scratch.ts';
import { reduceTokenLoss } from './reduce.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

const LARGEST_LOG_RATIO = 10;

export const gspo: PolicyLoss = { scope: 'sequence', needs: LOSS_NEEDS.gspo, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const [lowest, highest] = clipBounds(config);
  const columns = columnsOf(input);
  const { tokens, rows, mask_T, valid, logProb_T, oldLogProb_T, advantages_T, detachedLogProb_T } = columns;
  const loss_T = scratch(tokens);
  const derivative_T = new Float64Array(tokens);
  let [clippedTokens, kl] = [0, 0];
  for (let s = 0; s < rowCount(rows); s++) {
    const [from, to] = [at(rows.offsets_S1, s), at(rows.offsets_S1, s + 1)];
    const mean = meanLogRatio(columns, from, to);
    const rowRatio = exp(Math.min(mean, LARGEST_LOG_RATIO));
    for (let t = from; t < to; t++) {
      const advantage = advantages_T[t] as number;
      const moved = (logProb_T[t] as number) - (detachedLogProb_T[t] as number);
      const ratio = moved === 0 ? rowRatio : exp(Math.min(moved + mean, LARGEST_LOG_RATIO));
      const unclipped = -advantage * ratio;
      const bounded = -advantage * clamp(ratio, lowest, highest);
      const clipped = bounded > unclipped;
      loss_T[t] = Math.max(unclipped, bounded);
      const share = passedShare(ratio, lowest, highest);
      derivative_T[t] = clipped || !(mean + moved < LARGEST_LOG_RATIO) ? 0 : unclipped * share;
      const mask = mask_T[t] as number;
      if (mask !== 0) {
        kl += -((logProb_T[t] as number) - (oldLogProb_T[t] as number)) * mask;
        if (clipped) clippedTokens += mask;
      }
    }
  }
  const metrics = {
    'actor/pg_clipfrac': tokenMean(clippedTokens, valid),
    'actor/ppo_kl': tokenMean(kl, valid),
    'actor/pg_clipfrac_lower': 0,
  };
  const mode = { ...config, lossAggMode: 'seq-mean-token-mean' } as const;
  const reduced = reduceTokenLoss({ ...input, rows }, mode, loss_T, derivative_T);
  return { ...reduced, metrics };
}

/**
 * Multiplied, not skipped: as in the reference, a NaN outside the mask spoils its row, and the row gets no gradient.
 */
function meanLogRatio({ mask_T, detachedLogProb_T, oldLogProb_T }: LossColumns, from: number, to: number): number {
  let [sum, count] = [0, 0];
  for (let t = from; t < to; t++) {
    const mask = mask_T[t] as number;
    sum += ((detachedLogProb_T[t] as number) - (oldLogProb_T[t] as number)) * mask;
    count += mask;
  }
  return sum / Math.max(count, 1);
}
