/** What a recipe must say to use an estimator, or a loss, and what the tests of all of them check of a run. */
import { expect } from 'vitest';
import { metricInfo } from '../core/metrics.ts';
import { recipeSchema } from '../core/recipe/index.ts';
import type { Recipe, RecipeInput, Tree } from '../core/recipe/index.ts';
import type { AdvantageName, PolicyLossName } from '../core/rl/names.ts';
import type { BatchRecord, UpdateRecord } from '../core/records/schema.ts';

export const recipeWith = (changes: Tree): Recipe =>
  recipeSchema.parse({ model: { path: 'm' }, data: { train_files: 'd' }, ...changes } as RecipeInput);

/** What waits for a later issue, by name, with the reason for which a recipe is refused. At most eight rows. */
export const WAITING: Readonly<Partial<Record<AdvantageName | PolicyLossName, string>>> = {
  gigpo: 'it learns from the steps of agents, and no run has agents yet',
};

/** Names of scores as the scorers of these tests return them. */
export const withEstimator = (name: AdvantageName): Tree => ({
  algorithm: { adv_estimator: name, lam: 0.95, ...(name === 'gdpo' && { gdpo_reward_keys: ['sevens', 'short'] }) },
});

export const bothCorrections = {
  rollout_is: 'token',
  rollout_rs: 'seq_mean_k1,token_k3',
  rollout_rs_threshold: '0.5_2,0.1',
};

export const withLoss = (name: PolicyLossName): Tree => ({
  actor: { policy_loss: { loss_mode: name, dro_beta: 0.1 }, ppo_mini_batch_size: 2 },
  ...(name === 'bypass_mode' && { algorithm: { rollout_correction: { bypass_mode: true, ...bothCorrections } } }),
  ...(name === 'online_dpo' && { rollout: { n: 2 } }),
});

/** Every metric is finite and documented, and no optimiser step was skipped. Returns the metrics of each iteration. */
export function soundMetrics(
  iterations: readonly { readonly batch: BatchRecord; readonly update: UpdateRecord }[],
): Record<string, number>[] {
  const metrics = iterations.map(
    ({ batch, update }) => ({ ...batch.metrics, ...update.metrics }) as Record<string, number>,
  );
  for (const one of metrics) {
    expect(Object.entries(one).filter(([, value]) => !Number.isFinite(value))).toEqual([]);
    expect(one).toMatchObject({ 'training/skipped_steps': 0 });
    expect(Object.keys(one).filter((name) => metricInfo(name) === undefined)).toEqual([]);
  }
  return metrics;
}
