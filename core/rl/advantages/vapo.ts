/**
 * The advantages of VAPO (Yue et al. 2025, arXiv 2504.05118; not part of verl): generalised advantage estimation with
 * one λ for the policy and one for the critic. A fixed λ forgets the outcome at the beginning of a long response, so
 * the policy's λ grows with the number l of valid tokens of the row:
 *
 *   λ_policy = max(0, 1 − 1 / (α·l)),   A = whiten(GAE(γ, λ_policy))
 *   R = GAE(γ, λ_critic) + V, the critic's target: with λ_critic = 1 the plain return
 *
 * As in `gae`, whitening is over the valid tokens of the batch, and A isn't multiplied by the mask afterwards. The loss
 * on positive examples that belongs to VAPO is a part of the actor's loss (`actor.positive_nll_coef`).
 */
import { at } from '../../at.ts';
import { maskedWhiten } from '../masked-stats.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { maskCounts, type RaggedRows } from '../ragged.ts';
import { criticTargets, generalizedAdvantages } from './gae.ts';
import { tokenInput } from './inputs.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

const ALPHA = 0.05;

export const vapo: AdvantageEstimator = { name: 'vapo', needs: ADVANTAGE_NEEDS.vapo, compute };

function compute(batch: AdvantageBatch, config: AdvantageConfig): Advantages {
  const { rows, rewards_T } = batch;
  const { gamma = 1, vapo: { lamCritic = 1 } = {} } = config;
  const values_T = tokenInput('vapo', 'values', batch);
  const forCritic_T = generalizedAdvantages(rewards_T, values_T, rows, gamma, () => lamCritic);
  return {
    advantages_T: maskedWhiten(lengthAdaptiveAdvantages(batch, config), rows.mask_T),
    returns_T: criticTargets(forCritic_T, values_T),
  };
}

/** The policy's advantages before whitening. */
export function lengthAdaptiveAdvantages(
  batch: AdvantageBatch,
  { gamma = 1, vapo = {} }: AdvantageConfig,
): Float64Array {
  const lambdas_S = lengthAdaptiveLambdas(batch.rows, vapo.alpha);
  const values_T = tokenInput('vapo', 'values', batch);
  return generalizedAdvantages(batch.rewards_T, values_T, batch.rows, gamma, (s) => at(lambdas_S, s));
}

/** The policy's λ of each row; 0 for a row without a valid token. */
export function lengthAdaptiveLambdas(rows: RaggedRows, alpha = ALPHA): Float64Array {
  return maskCounts(rows).map((length) => Math.max(0, 1 - 1 / (alpha * length)));
}
