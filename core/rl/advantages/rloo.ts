/**
 * REINFORCE leave-one-out (verl: `rloo`; Ahmadian et al. 2024, arXiv 2402.14740): the score of a sample minus the mean
 * score of the k − 1 other samples of its prompt.
 *
 *   A = k / (k − 1) · (s − mean_g)
 *
 * A group of one keeps its score in `rloo` and gets 0 in `rloo_vectorized`: verl's two forms disagree.
 */
import { at } from '../../at.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { groupStats, rowsByGroup } from './groups.ts';
import { requireSamples } from './inputs.ts';
import { outcomeAdvantages, outcomeScores } from './outcomes.ts';
import type { AdvantageBatch, AdvantageEstimator, Advantages } from './types.ts';

export const rloo: AdvantageEstimator = {
  name: 'rloo',
  needs: ADVANTAGE_NEEDS.rloo,
  compute: (batch) => compute(batch, (score) => score),
};

export const rlooVectorized: AdvantageEstimator = {
  name: 'rloo_vectorized',
  needs: ADVANTAGE_NEEDS.rloo_vectorized,
  compute: (batch) => compute(batch, () => 0),
};

function compute(batch: AdvantageBatch, ofGroupOfOne: (score: number) => number): Advantages {
  requireSamples('groups', batch.groups_S, batch);
  const scores_S = outcomeScores(batch.rewards_T, batch.rows);
  const advantages_S = new Float64Array(scores_S.length);
  for (const members of rowsByGroup(batch.groups_S).values()) {
    const { mean } = groupStats(scores_S, members);
    const scale = members.length / (members.length - 1);
    for (const s of members) {
      const score = at(scores_S, s);
      advantages_S[s] = members.length === 1 ? ofGroupOfOne(score) : (score - mean) * scale;
    }
  }
  return outcomeAdvantages(advantages_S, batch.rows);
}
