/**
 * Advantages of SPPO (verl-recipe: `sppo`; Wu et al. 2024, arXiv 2405.00675): the score of a sample minus a soft mean,
 *
 *   A_s = score_s − (log Σ exp(β·score) − log n) / β
 *
 * over the WHOLE batch, not per prompt. β = 0 is the arithmetic mean; a large β approaches the maximum, a negative one
 * the minimum.
 */
import { exp } from '../../math/exp.ts';
import { log } from '../../math/log.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import type { Numbers } from '../ragged.ts';
import { outcomeAdvantages, outcomeScores } from './outcomes.ts';
import type { AdvantageBatch, AdvantageEstimator, Advantages } from './types.ts';

/** SPPO with β = 1, as by default in the recipe. */
export const sppo: AdvantageEstimator = { name: 'sppo', needs: ADVANTAGE_NEEDS.sppo, compute };

function compute({ rows, rewards_T }: AdvantageBatch): Advantages {
  return outcomeAdvantages(softmeanAdvantages(outcomeScores(rewards_T, rows)), rows);
}

/** β is 1 by default in the recipe. One value per sample. */
export function softmeanAdvantages(scores_S: Numbers, beta = 1): Float64Array {
  const scores = Float64Array.from(scores_S);
  const baseline = softmean(scores, beta);
  return scores.map((score) => score - baseline);
}

function softmean(values: Float64Array, beta: number): number {
  if (beta === 0) return values.reduce((sum, value) => sum + value, 0) / values.length;
  const largest = values.reduce((max, value) => Math.max(max, beta * value), -Infinity);
  const scaled = values.reduce((sum, value) => sum + exp(beta * value - largest), 0);
  return (largest + log(scaled) - log(values.length)) / beta;
}
