/**
 * Group-relative advantages (verl: `grpo`; Shao et al. 2024, arXiv 2402.03300): the score of a sample against the other
 * samples of its prompt, the same on all its tokens.
 *
 *   A = (s − mean_g) / (std_g + 1e-6)
 *
 * Without the division it is Dr.GRPO (Liu et al. 2025, arXiv 2503.20783). A group of one keeps its score (mean 0, std
 * 1). Of an agent session with several outputs only the last one enters the group; sessions.ts.
 */
import { at } from '../../at.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import type { Numbers } from '../ragged.ts';
import { groupStats, rowsByGroup } from './groups.ts';
import { requireSamples } from './inputs.ts';
import { outcomeAdvantages, outcomeScores } from './outcomes.ts';
import { overFinalOutputs } from './sessions.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

const EPSILON = 1e-6;

export const grpo: AdvantageEstimator = { name: 'grpo', needs: ADVANTAGE_NEEDS.grpo, compute };

/** verl's faster form of the same arithmetic. As in verl, it takes the outputs of a session for independent samples. */
export const grpoVectorized: AdvantageEstimator = {
  name: 'grpo_vectorized',
  needs: ADVANTAGE_NEEDS.grpo_vectorized,
  compute: ({ sessions: _, ...batch }, config) => compute(batch, config),
};

function compute(batch: AdvantageBatch, config: AdvantageConfig): Advantages {
  const { rows, groups_S, sessions } = batch;
  requireSamples('groups', groups_S, batch);
  const scores_S = outcomeScores(batch.rewards_T, rows);
  const normalize = (scores: Numbers, groups: ArrayLike<unknown>) => normalizedScores(scores, groups, config);
  const advantages_S =
    sessions === undefined ? normalize(scores_S, groups_S) : overFinalOutputs(batch, sessions, scores_S, normalize);
  return outcomeAdvantages(advantages_S, rows);
}

/** A of each sample. */
export function normalizedScores(
  scores_S: Numbers,
  groups_S: ArrayLike<unknown>,
  { normAdvByStdInGrpo = true, epsilon = EPSILON }: AdvantageConfig,
): Float64Array {
  const advantages_S = new Float64Array(scores_S.length);
  for (const members of rowsByGroup(groups_S).values()) {
    const { mean, std } = groupStats(scores_S, members);
    const scale = normAdvByStdInGrpo ? std + epsilon : 1;
    for (const s of members) advantages_S[s] = (at(scores_S, s) - mean) / scale;
  }
  return advantages_S;
}
