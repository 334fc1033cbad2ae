/**
 * Token rewards from PRIME's implicit reward model (verl-recipe: `_forward_micro_batch`, `prime_norm`; Cui et al. 2025,
 * arXiv 2502.01456). With q = log π_rm − log π_ref of each response token, the last token of a row included:
 *
 *   λ = 0   r_t = β·q_t
 *   λ > 0   r_t = β·q_t + λ·r_{t+1}; with `useGroundTruth`, the last β·q is first replaced by accuracy − Σ of the
 *           others
 *
 *   granularity token   each token gets r_t, but the last one of a row gets 0
 *   granularity whole   the last token gets the sum of the row's β·q. verl crashes here, unless the response has
 *                       one token
 *   batch_norm          all rewards ÷ (the largest |reverse cumulative sum| of the batch + 1e-6)
 *
 * With λ = 0 the accuracy is not used. Rows are whole responses: the mask is not read.
 */
import { at } from '../../at.ts';
import { float64 } from '../float64.ts';
import { InvalidInputError } from '../../errors.ts';
import { requireTokens, rowCount, tokenCount, type Numbers, type RaggedRows } from '../ragged.ts';

export interface ProcessRewardConfig {
  /** 0.05 (verl-recipe: `beta_train`). */
  readonly beta: number;
  /** 0. */
  readonly lambda: number;
  /** Key `prime_use_gt`. */
  readonly useGroundTruth: boolean;
  /** Key `prime_granularity`: token or whole. */
  readonly granularity: string;
  /** Key `prime_norm`: batch_norm or none. */
  readonly norm: string;
}

/** @throws InvalidInputError for an unknown granularity or norm, or arrays of different lengths */
export function processRewards(
  rows: RaggedRows,
  q_T: Numbers,
  accuracies_S: Numbers,
  config: ProcessRewardConfig,
): Float64Array {
  requireTokens('q', q_T, tokenCount(rows));
  if (accuracies_S.length !== rowCount(rows)) {
    throw new InvalidInputError(`process rewards got ${accuracies_S.length} accuracies for ${rowCount(rows)} rows`);
  }
  const rewards_T = new Float64Array(q_T.length);
  const scaled_T = float64(q_T).map((q) => q * config.beta);
  for (let s = 0; s < rowCount(rows); s++) {
    const [from, to] = [at(rows.offsets_S1, s), at(rows.offsets_S1, s + 1)];
    if (to === from) continue;
    if (config.lambda !== 0 && config.useGroundTruth) {
      let others = 0;
      for (let t = from; t < to - 1; t++) others += scaled_T[t] as number;
      scaled_T[to - 1] = at(accuracies_S, s) - others;
    }
    place(config, scaled_T, from, to, rewards_T);
  }
  return normalised(rewards_T, rows, config.norm);
}

function place(
  { granularity, lambda }: ProcessRewardConfig,
  scaled_T: Float64Array,
  from: number,
  to: number,
  rewards_T: Float64Array,
): void {
  let [carried, sum] = [0, 0];
  for (let t = to - 1; t >= from; t--) {
    carried = (scaled_T[t] as number) + lambda * carried;
    sum += scaled_T[t] as number;
    if (granularity === 'token' && t < to - 1) rewards_T[t] = carried;
  }
  if (granularity === 'whole') rewards_T[to - 1] = sum;
  else if (granularity !== 'token') {
    throw new InvalidInputError(`unknown prime_granularity "${granularity}"`, { hint: 'token or whole' });
  }
}

function normalised(rewards_T: Float64Array, rows: RaggedRows, norm: string): Float64Array {
  if (norm === 'none') return rewards_T;
  if (norm !== 'batch_norm') {
    throw new InvalidInputError(`unknown prime_norm "${norm}"`, { hint: 'batch_norm or none' });
  }
  let largest = 0;
  for (let s = 0; s < rowCount(rows); s++) {
    let sum = 0;
    for (let t = at(rows.offsets_S1, s + 1) - 1; t >= at(rows.offsets_S1, s); t--) {
      sum += rewards_T[t] as number;
      largest = Math.max(largest, Math.abs(sum));
    }
  }
  for (let t = 0; t < rewards_T.length; t++) rewards_T[t] = (rewards_T[t] as number) / (largest + 1e-6);
  return rewards_T;
}
