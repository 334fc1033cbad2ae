/**
 * On-policy RL with an optimal baseline (verl: `opo`; Hao et al. 2025, arXiv 2505.23585): the score of a sample minus
 * the mean score of its group, weighted by length. That is the baseline of least variance if the gradient's square
 * grows with the number of tokens.
 *
 *   A = s − Σ len·s / Σ len,   len = tokens with mask 1
 *
 * A group of one keeps its score. In a group without a valid token verl divides 0 by 0; here it is 0 everywhere.
 */
import { at } from '../../at.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { maskCounts, type Numbers } from '../ragged.ts';
import { rowsByGroup } from './groups.ts';
import { requireSamples } from './inputs.ts';
import { outcomeAdvantages, outcomeScores } from './outcomes.ts';
import type { AdvantageBatch, AdvantageEstimator, Advantages } from './types.ts';

export const opo: AdvantageEstimator = { name: 'opo', needs: ADVANTAGE_NEEDS.opo, compute };

function compute(batch: AdvantageBatch): Advantages {
  requireSamples('groups', batch.groups_S, batch);
  const scores_S = outcomeScores(batch.rewards_T, batch.rows);
  const lengths_S = maskCounts(batch.rows);
  const advantages_S = new Float64Array(scores_S.length);
  for (const members of rowsByGroup(batch.groups_S).values()) {
    const baseline = members.length === 1 ? 0 : weightedMean(scores_S, lengths_S, members);
    for (const s of members) advantages_S[s] = at(scores_S, s) - baseline;
  }
  return outcomeAdvantages(advantages_S, batch.rows);
}

function weightedMean(scores_S: Numbers, lengths_S: Numbers, members: readonly number[]): number {
  const first = at(scores_S, at(members, 0));
  if (members.every((s) => scores_S[s] === first)) return first;
  let [sum, weight] = [0, 0];
  for (const s of members) {
    sum += at(lengths_S, s) * at(scores_S, s);
    weight += at(lengths_S, s);
  }
  return sum / Math.max(weight, 1);
}
