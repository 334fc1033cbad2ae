/**
 * Group policy gradient (verl: `gpg`; Chu et al. 2025, arXiv 2504.02546): the score of a sample minus the mean of its
 * group, scaled up by the share of samples of the whole batch whose score is not 0, because the others give no
 * gradient.
 *
 *   A = α · (s − mean_g) / f_norm,   α = samples / max(number of s ≠ 0, 1)
 *
 * There is no division by the standard deviation. A group of one keeps its score, times α. Meant for the policy loss
 * `gpg`.
 */
import { at } from '../../at.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { centredScores } from './groups.ts';
import { requireSamples } from './inputs.ts';
import { outcomeAdvantages, outcomeScores } from './outcomes.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

export const gpg: AdvantageEstimator = { name: 'gpg', needs: ADVANTAGE_NEEDS.gpg, compute };

function compute(batch: AdvantageBatch, { fNorm = 1 }: AdvantageConfig): Advantages {
  requireSamples('groups', batch.groups_S, batch);
  const scores_S = outcomeScores(batch.rewards_T, batch.rows);
  let nonZero = 0;
  for (const score of scores_S) if (score !== 0) nonZero++;
  const alpha = scores_S.length / Math.max(nonZero, 1);
  const advantages_S = centredScores(scores_S, batch.groups_S);
  for (let s = 0; s < advantages_S.length; s++) advantages_S[s] = (alpha * at(advantages_S, s)) / fNorm;
  return outcomeAdvantages(advantages_S, batch.rows);
}
