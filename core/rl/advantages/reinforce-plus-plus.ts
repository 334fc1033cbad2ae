/**
 * REINFORCE++ (verl: `reinforce_plus_plus`; Hu 2025, arXiv 2501.03262): discounted rewards to go, whitened over all
 * valid tokens of the batch, without groups and without a critic.
 *
 *   G_t = r_t + γ·G⁺ (tokens with mask 0 are skipped),   R = G·m,   A = whiten(R)·m
 *
 * A batch needs two valid tokens.
 */
import { maskedWhiten } from '../masked-stats.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { clearMasked, requireTokens, tokenCount } from '../ragged.ts';
import { rewardToGo } from './reward-to-go.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

export const reinforcePlusPlus: AdvantageEstimator = {
  name: 'reinforce_plus_plus',
  needs: ADVANTAGE_NEEDS.reinforce_plus_plus,
  compute,
};

function compute({ rows, rewards_T }: AdvantageBatch, { gamma = 1 }: AdvantageConfig): Advantages {
  requireTokens('rewards', rewards_T, tokenCount(rows));
  const returns_T = clearMasked(rewardToGo(rewards_T, rows, gamma), rows);
  return { advantages_T: clearMasked(maskedWhiten(returns_T, rows.mask_T), rows), returns_T };
}
