/**
 * The KL divergence from the reference policy as part of the reward (verl: `apply_kl_penalty`, key
 * `algorithm.use_kl_in_reward`; Ouyang et al. 2022, arXiv 2203.02155), instead of a term of the loss.
 *
 *   r'_t = r_t − β·KL_t·m_t,   KL_t an estimate from the log-probs of the sampled token (kl.ts)
 *
 * The mean KL is over samples of the mean over the valid tokens of each; a sample without a valid token counts as 0.
 * The metric of the coefficient is the β that was used; `nextKlCoef` gives the one of the next batch.
 */
import { at } from '../at.ts';
import { float64, valueAt } from './float64.ts';
import { klPenalty } from './kl.ts';
import { maskedMean } from './masked-stats.ts';
import { requireTokens, rowCount, tokenCount, type Numbers, type RaggedRows } from './ragged.ts';

export interface KlInRewardInput {
  readonly rows: RaggedRows;
  /** The scorer's rewards (verl: `token_level_scores`). */
  readonly scores_T: Numbers;
  readonly oldLogProb_T: Numbers;
  readonly refLogProb_T: Numbers;
}

export interface KlInReward {
  readonly rewards_T: Float64Array;
  /** Mean KL of the batch, 0 for an empty one: what a controller is updated with. */
  readonly kl: number;
  /** verl's names. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * `type`: key `algorithm.kl_penalty`. @throws InvalidInputError for an unknown one, and for arrays of other lengths.
 */
export function klInReward(input: KlInRewardInput, type: string, coefficient: number): KlInReward {
  const { rows } = input;
  const tokens = tokenCount(rows);
  requireTokens('scores', input.scores_T, tokens);
  requireTokens('old log-probs', input.oldLogProb_T, tokens);
  const { kl_T } = klPenalty(input.oldLogProb_T, input.refLogProb_T, type);
  const [scores_T, mask_T] = [float64(input.scores_T), float64(rows.mask_T)];
  const rewards_T = new Float64Array(tokens);
  for (let t = 0; t < tokens; t++) {
    const penalty = valueAt(mask_T, t) === 0 ? 0 : coefficient * valueAt(kl_T, t);
    rewards_T[t] = valueAt(scores_T, t) - penalty;
  }
  const kl = meanOfRows(kl_T, mask_T, rows);
  return { rewards_T, kl, metrics: { 'actor/reward_kl_penalty': kl, 'actor/reward_kl_penalty_coeff': coefficient } };
}

function meanOfRows(kl_T: Float64Array, mask_T: Float64Array, rows: RaggedRows): number {
  let sum = 0;
  for (let s = 0; s < rowCount(rows); s++) {
    const [from, to] = [at(rows.offsets_S1, s), at(rows.offsets_S1, s + 1)];
    sum += maskedMean(kl_T.subarray(from, to), mask_T.subarray(from, to));
  }
  return sum / Math.max(rowCount(rows), 1);
}
