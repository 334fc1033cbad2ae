/**
 * FlowRL (verl-recipe: `flowrl`; Zhu et al. 2025, arXiv 2509.15207): trajectory balance, so that the policy's
 * distribution matches exp(reward)/Z. With means over the valid tokens of a row, and Z from a head beside the policy,
 *
 *   δ_s = log Z_s + mean log π − β·mean R − mean log π_ref
 *   L = mean over rows of sg(min(exp(Σ_t (log π − log π_old)), 10))·δ_s²
 *
 * R are the advantages. The weight is capped from above only, and the log-ratio isn't clamped. A row without a valid
 * token contributes log Z². The aggregation mode is ignored.
 */
import { at } from '../../at.ts';
import { exp } from '../../math/exp.ts';
import { square } from '../../math/square.ts';
import { rowMeanWeight } from '../aggregate.ts';
import { float64 } from '../float64.ts';
import { InvalidInputError } from '../../errors.ts';
import { requireTokens, rowCount } from '../ragged.ts';
import { rowSums, spreadOverRow } from '../row-sums.ts';
import { columnsOf, needed, tokenMean, type LossColumns } from './columns.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

const LARGEST_WEIGHT = 10;

export const flowrl: PolicyLoss = { scope: 'sequence', needs: LOSS_NEEDS.flowrl, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const columns = columnsOf(input);
  const { tokens, rows, mask_T, logProb_T } = columns;
  const ref_T = float64(needed(input.refLogProb_T, 'flowrl', 'refLogProbs'));
  requireTokens('reference log-probs', ref_T, tokens);
  const logZ_S = logZOf(input);
  const counts_S = rowSums(mask_T, rows);
  const [sums_S, old_S] = [rowSums(logProb_T, rows), rowSums(columns.oldLogProb_T, rows)];
  const [refs_S, rewards_S] = [rowSums(ref_T, rows), rowSums(columns.advantages_T, rows)];
  const detached_S = rowSums(columns.detachedLogProb_T, rows);
  const rowWeight = rowMeanWeight(config.totals, counts_S.length);
  const dLogProb_T = new Float64Array(tokens);
  const dLogZ_S = new Float64Array(counts_S.length);
  let [loss, importance] = [0, 0];
  for (let s = 0; s < counts_S.length; s++) {
    const count = at(counts_S, s) + 1e-8;
    const reward = (config.flowrlBetaCoef ?? 15) * (at(rewards_S, s) / count);
    const residual = at(logZ_S, s) + at(sums_S, s) / count - reward - at(refs_S, s) / count;
    const weight = Math.min(exp(at(detached_S, s) - at(old_S, s)), LARGEST_WEIGHT);
    loss += rowWeight * weight * square(residual);
    importance += weight;
    const slope = 2 * rowWeight * weight * residual;
    dLogZ_S[s] = slope;
    spreadOverRow(slope / count, s, rows, mask_T, dLogProb_T);
  }
  const metrics = metricsOf(columns, [sums_S, old_S, refs_S, rewards_S]);
  const ofRows = { 'actor/log_z': mean(logZ_S), 'actor/importance_weight': importance / counts_S.length };
  return { loss, dLogProb_T, dLogZ_S, metrics: { ...metrics, ...ofRows, 'actor/final_loss': loss } };
}

function logZOf(input: PolicyLossInput): Float64Array {
  const logZ_S = float64(needed(input.logZ_S, 'flowrl', 'logZ'));
  const rows = rowCount(input.rows);
  if (logZ_S.length !== rows)
    throw new InvalidInputError(`flowrl got ${logZ_S.length} values of log Z for ${rows} rows`);
  return logZ_S;
}

/** Means over all valid tokens, from the sums of the rows. */
function metricsOf({ valid }: LossColumns, sums: readonly Float64Array[]): Record<string, number> {
  const [logProb = 0, old = 0, ref = 0, reward = 0] = sums.map((values_S) => tokenMean(total(values_S), valid));
  return {
    'actor/log_prob': logProb,
    'actor/old_log_prob': old,
    'actor/ref_log_prob': ref,
    'actor/log_reward': reward,
    'actor/ppo_kl': old - logProb,
    'actor/ref_kl': ref - logProb,
  };
}

function mean(values: Float64Array): number {
  return total(values) / values.length;
}

function total(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0);
}
