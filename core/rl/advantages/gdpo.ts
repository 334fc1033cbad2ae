/**
 * Group reward-decoupled normalisation (verl: `gdpo`; Liu et al. 2026, arXiv 2601.05242): every component of the score
 * is normalised within its group by itself, so a component with a wide range can't hide the others.
 *
 *   A = whiten(Σ_k w_k · GRPO(s_k))·m,   R = A
 *
 * A component that is constant within a group adds 0. Whitening is over all valid tokens of the batch and removes a
 * common factor of the weights. The token rewards aren't read. A batch needs two valid tokens.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import { maskedWhiten } from '../masked-stats.ts';
import { ADVANTAGE_NEEDS } from '../names.ts';
import { broadcastRows, clearMasked, rowCount, type Numbers } from '../ragged.ts';
import { normalizedScores } from './grpo.ts';
import { missing, requireSamples } from './inputs.ts';
import type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

export const gdpo: AdvantageEstimator = { name: 'gdpo', needs: ADVANTAGE_NEEDS.gdpo, compute };

function compute(batch: AdvantageBatch, config: AdvantageConfig): Advantages {
  const { rows, groups_S } = batch;
  requireSamples('groups', groups_S, batch);
  const total_S = new Float64Array(rowCount(rows));
  for (const { scores_S, weight } of componentsOf(batch, config)) {
    const advantages_S = normalizedScores(scores_S, groups_S, config);
    for (let s = 0; s < total_S.length; s++) total_S[s] = at(total_S, s) + weight * at(advantages_S, s);
  }
  const advantages_T = clearMasked(maskedWhiten(broadcastRows(total_S, rows), rows.mask_T), rows);
  return { advantages_T, returns_T: advantages_T };
}

interface Component {
  readonly scores_S: Numbers;
  readonly weight: number;
}

function componentsOf(batch: AdvantageBatch, config: AdvantageConfig): Component[] {
  const { gdpoRewardKeys: keys = [], gdpoRewardWeights: weights = keys.map(() => 1) } = config;
  const given = batch.components ?? missing('gdpo', 'scores by name', 'components', 'let the scorer return an object');
  if (keys.length === 0) {
    throw new InvalidInputError('gdpo needs the names of the components to add up', {
      hint: `set algorithm.gdpo_reward_keys; the scorer gives ${named(given)}`,
    });
  }
  if (weights.length !== keys.length) {
    throw new InvalidInputError(`gdpo has ${weights.length} weights for ${keys.length} components`, {
      hint: 'give algorithm.gdpo_reward_weights one weight for each of algorithm.gdpo_reward_keys, or null',
    });
  }
  return keys.map((key, k) => {
    const scores_S = Object.hasOwn(given, key) ? given[key] : undefined;
    if (scores_S === undefined) {
      throw new InvalidInputError(`the scorer gives no component "${key}"`, { hint: `it gives ${named(given)}` });
    }
    requireSamples(`component "${key}"`, scores_S, batch);
    return { scores_S, weight: at(weights, k) };
  });
}

function named(components: Readonly<Record<string, Numbers>>): string {
  return Object.keys(components).join(', ') || 'none';
}
