/**
 * Advantages for pass@k (verl: `grpo_passk`; Tang et al. 2025, arXiv 2503.19595): only the best sample of a group gets
 * one, by how much it beats the second best.
 *
 *   A = (s_best − s_second) / (std_g + 1e-6) for the first best sample, 0 for all others
 *
 * A tie for the best gives 0 for the whole group. Without `normAdvByStdInGrpo` there is no division. A group of one is
 * refused.
 */
import { at } from '../../at.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import type { Numbers } from '../ragged.ts';
import { groupStats, rowsByGroup } from './groups.ts';
import { requireSamples, requireTwo } from './inputs.ts';
import { outcomeAdvantages, outcomeScores } from './outcomes.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

export const grpoPassk: AdvantageEstimator = { name: 'grpo_passk', needs: ADVANTAGE_NEEDS.grpo_passk, compute };

function compute(batch: AdvantageBatch, { normAdvByStdInGrpo = true, epsilon = 1e-6 }: AdvantageConfig): Advantages {
  requireSamples('groups', batch.groups_S, batch);
  const scores_S = outcomeScores(batch.rewards_T, batch.rows);
  const advantages_S = new Float64Array(scores_S.length);
  for (const [group, members] of rowsByGroup(batch.groups_S)) {
    requireTwo('grpo_passk', members, group);
    const [best, second] = bestTwo(scores_S, members);
    const margin = at(scores_S, best) - at(scores_S, second);
    advantages_S[best] = normAdvByStdInGrpo ? margin / (groupStats(scores_S, members).std + epsilon) : margin;
  }
  return outcomeAdvantages(advantages_S, batch.rows);
}

/** The first sample with the highest score, and the first of the others with the highest. */
function bestTwo(scores_S: Numbers, members: readonly number[]): [best: number, second: number] {
  const higher = (a: number, b: number) => (at(scores_S, b) > at(scores_S, a) ? b : a);
  const best = members.reduce(higher);
  return [best, members.filter((s) => s !== best).reduce(higher)];
}
