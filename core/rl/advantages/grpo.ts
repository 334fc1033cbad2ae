/**
 * Group-relative advantages (verl: `grpo`; Shao et al. 2024, arXiv 2402.03300): the score of a sample against the other
 * samples of its prompt, the same on all its tokens.
 *
 *   A = (s − mean_g) / (std_g + 1e-6)
 *
 * Without the division it is Dr.GRPO (Liu et al. 2025, arXiv 2503.20783). A group of one keeps its score (mean 0, std 1).
 */
import { at } from '../../at.ts';
import { broadcastRows } from '../ragged.ts';
import { groupStats, rowsByGroup } from './groups.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

const EPSILON = 1e-6;

export const grpo: AdvantageEstimator = { name: 'grpo', compute };

/** verl's faster form of the same estimator; here both have the same implementation. */
export const grpoVectorized: AdvantageEstimator = { name: 'grpo_vectorized', compute };

function compute({ rows, scores_S, groups_S }: AdvantageBatch, config: AdvantageConfig): Advantages {
  const advantages_S = new Float64Array(scores_S.length);
  for (const members of rowsByGroup(groups_S).values()) {
    const { mean, std } = groupStats(scores_S, members);
    const scale = config.normAdvByStdInGrpo === false ? 1 : std + EPSILON;
    for (const s of members) advantages_S[s] = (at(scores_S, s) - mean) / scale;
  }
  const advantages_T = broadcastRows(advantages_S, rows);
  return { advantages_T, returns_T: advantages_T };
}
