/** The scores of a batch after its reward manager: with the penalty for long responses, or in components. */
import { at } from '../../../core/at.ts';
import { dapoRewards } from '../../../core/rl/reward-managers/dapo.ts';
import { gdpoRewards } from '../../../core/rl/reward-managers/gdpo.ts';
import { naiveRewards } from '../../../core/rl/reward-managers/naive.ts';
import type { ScorerResult } from '../../../core/rl/reward-managers/types.ts';
import type { AlgorithmSettings } from '../../../core/wire/jobs/index.ts';
import type { Sample } from './samples.ts';

export interface ManagedScores {
  readonly scores_S: Float32Array;
  /** Scores by name, of each sample. */
  readonly components?: Readonly<Record<string, Float64Array>>;
  readonly metrics: Readonly<Record<string, number>>;
}

export function managedScores(
  { overlong, components: wanted }: Pick<AlgorithmSettings, 'overlong' | 'components'>,
  samples: readonly Sample[],
): ManagedScores {
  const scores_S = Float32Array.from(samples, ({ score }) => score);
  if (samples.length === 0) return { scores_S, metrics: {} };
  if (overlong !== undefined) {
    const lengths_S = samples.map(({ response }) => response.length);
    const { rewards_S, columns } = dapoRewards(samples.map(resultOf), lengths_S, { overlong });
    const shown = { overlong: columns['overlong'], overlong_reward: columns['overlong_reward'], score: scores_S };
    const means = Object.entries(shown).map(([name, values]) => [`reward_extra/${name}/mean`, mean(values ?? [])]);
    return { scores_S: Float32Array.from(rewards_S), metrics: Object.fromEntries(means) };
  }
  if (wanted !== undefined) {
    const { components, metrics } = gdpoRewards(samples.map(resultOf), wanted.keys);
    return { scores_S, components, metrics };
  }
  return { scores_S: Float32Array.from(naiveRewards(samples.map(resultOf)).rewards_S), metrics: {} };
}

/** A score without columns is its own column `acc`. */
function resultOf({ score, columns }: Sample): ScorerResult {
  return Object.keys(columns).length === 0 ? { acc: score, score } : { ...columns, score };
}

function mean(values: ArrayLike<number | string | boolean | null>): number {
  let sum = 0;
  for (let s = 0; s < values.length; s++) sum += Number(at(values, s));
  return sum / values.length;
}
