/**
 * The advantages of single-stream policy optimisation (verl-recipe: `spo`; Xu and Ding 2025, arXiv 2509.13232): the
 * score of a sample against what its prompt has scored in earlier iterations, so one response per prompt is enough.
 *
 *   a = s − p̂ (the prompt's value, `promptRate` of its tracker),   A = (a − mean a) / (std a + 1e-8)
 *
 * Mean and unbiased std are over the samples of the batch, which needs two. R = A.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { groupStats } from './groups.ts';
import { sampleInput } from './inputs.ts';
import { outcomeAdvantages, outcomeScores } from './outcomes.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

const EPSILON = 1e-8;

export const spo: AdvantageEstimator = { name: 'spo', needs: ADVANTAGE_NEEDS.spo, compute };

function compute(batch: AdvantageBatch, { epsilon = EPSILON }: AdvantageConfig): Advantages {
  const values_S = sampleInput('spo', 'promptValues', batch);
  const surplus_S = outcomeScores(batch.rewards_T, batch.rows).map((score, s) => score - at(values_S, s));
  if (surplus_S.length < 2) {
    throw new InvalidInputError(`spo normalises over a batch of two samples or more, got ${surplus_S.length}`, {
      hint: 'raise data.train_batch_size',
    });
  }
  const { mean, std } = groupStats(surplus_S, [...surplus_S.keys()]);
  const advantages_S = surplus_S.map((surplus) => (surplus - mean) / (std + epsilon));
  return outcomeAdvantages(advantages_S, batch.rows);
}
