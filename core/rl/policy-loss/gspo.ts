/**
 * Group sequence policy optimisation (verl: `gspo`; Zheng et al. 2025, arXiv 2507.18071): PPO's clip on the ratio of whole
 * sequences, s = exp(mean_t log(π / π_old)), whose gradient still reaches every token. The log-ratio is bounded above by
 * 10, and aggregation is always seq-mean-token-mean.
 */
import { at } from '../../at.ts';
import { maskedMean } from '../masked-stats.ts';
import { maskCounts, rowCount } from '../ragged.ts';
import { clipBounds } from './clip-bounds.ts';
import { negated } from './log-ratio.ts';
import { reduceTokenLoss } from './reduce.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

const LARGEST_LOG_RATIO = 10;

export const gspo: PolicyLoss = { scope: 'sequence', compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const { rows, advantages_T } = input;
  const [lowest, highest] = clipBounds(config);
  const logRatio_T = Float64Array.from(input.logProb_T, (logProb, t) => logProb - at(input.oldLogProb_T, t));
  const counts_S = maskCounts(rows);
  const loss_T = new Float64Array(logRatio_T.length);
  const derivative_T = new Float64Array(logRatio_T.length);
  const clipped_T = new Float64Array(logRatio_T.length);
  for (let s = 0; s < rowCount(rows); s++) {
    const [from, to] = [at(rows.offsets_S1, s), at(rows.offsets_S1, s + 1)];
    let sum = 0;
    // Multiplied, not skipped: as in the reference, a NaN outside the mask spoils its row, and the row gets no
    // gradient.
    for (let t = from; t < to; t++) sum += at(logRatio_T, t) * at(rows.mask_T, t);
    const mean = sum / Math.max(at(counts_S, s), 1);
    const ratio = Math.exp(Math.min(mean, LARGEST_LOG_RATIO));
    const bounded = Math.min(Math.max(ratio, lowest), highest);
    for (let t = from; t < to; t++) {
      const advantage = at(advantages_T, t);
      const clipped = -advantage * bounded > -advantage * ratio;
      loss_T[t] = Math.max(-advantage * ratio, -advantage * bounded);
      derivative_T[t] = clipped || !(mean <= LARGEST_LOG_RATIO) ? 0 : -advantage * ratio;
      clipped_T[t] = Number(clipped);
    }
  }
  const metrics = {
    'actor/pg_clipfrac': maskedMean(clipped_T, rows.mask_T),
    'actor/ppo_kl': maskedMean(negated(logRatio_T), rows.mask_T),
    'actor/pg_clipfrac_lower': 0,
  };
  const reduced = reduceTokenLoss(input, { ...config, lossAggMode: 'seq-mean-token-mean' }, loss_T, derivative_T);
  return { ...reduced, metrics };
}
