/**
 * ReMax (verl: `remax`; Li et al. 2023, arXiv 2310.10505): the reward to go minus the score b of a greedy response to
 * the same prompt, which costs one more response per prompt.
 *
 *   R_t = Σ_{u ≥ t} r_u·m_u,   A_t = R_t − b·m_t
 *
 * As in verl, positions with mask 0 aren't set to 0: both carry the sum of what follows.
 */
import { valueAt } from '../float64.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { broadcastRows, requireTokens, tokenCount } from '../ragged.ts';
import { sampleInput } from './inputs.ts';
import { rewardToGo } from './reward-to-go.ts';
import type { AdvantageBatch, AdvantageEstimator, Advantages } from './types.ts';

export const remax: AdvantageEstimator = { name: 'remax', needs: ADVANTAGE_NEEDS.remax, compute };

function compute(batch: AdvantageBatch): Advantages {
  const { rows, rewards_T } = batch;
  requireTokens('rewards', rewards_T, tokenCount(rows));
  const returns_T = rewardToGo(rewards_T, rows);
  const advantages_T = broadcastRows(sampleInput('remax', 'greedyBaselines', batch), rows);
  for (let t = 0; t < advantages_T.length; t++) advantages_T[t] = valueAt(returns_T, t) - valueAt(advantages_T, t);
  return { advantages_T, returns_T };
}
