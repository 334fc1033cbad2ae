/** Every advantage estimator that a recipe may name, in a run of two iterations. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recipeSchema, runIssues } from '../../core/recipe/index.ts';
import { ADVANTAGE_NAMES, needsOf } from '../../core/rl/names.ts';
import type { AdvantageName } from '../../core/rl/names.ts';
import { LoopUnderTest, onePool } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
beforeAll(() => loop.up(onePool));
afterAll(() => loop.remove()); // also verifies every ledger, with all tensors

const issuesOf = (adv_estimator: AdvantageName) =>
  runIssues(
    recipeSchema.parse({ model: { path: 'm' }, data: { train_files: 'd' }, algorithm: { adv_estimator } }),
  ).filter(({ path }) => path === 'algorithm.adv_estimator');

const [built, refused] = [
  ADVANTAGE_NAMES.filter((name) => issuesOf(name).length === 0),
  ADVANTAGE_NAMES.filter((name) => issuesOf(name).length > 0),
];

describe('an advantage estimator', () => {
  it.each(built)('%s: two iterations have finite metrics, change the weights and skip no step', async (name) => {
    const run = await loop.completed({
      algorithm: { adv_estimator: name, lam: 0.95 },
      actor: { ppo_mini_batch_size: 2 },
      trainer: { total_training_steps: 2 },
    });
    const made = await loop.iterations(run);
    expect(made).toHaveLength(2);
    const states = made.map(({ update }) => update.components['actor']?.weightsDigest);
    expect(new Set(states).size).toBe(2);
    for (const { batch, update } of made) {
      const metrics = { ...batch.metrics, ...update.metrics };
      expect(Object.entries(metrics).filter(([, value]) => !Number.isFinite(value))).toEqual([]);
      expect(metrics).toMatchObject({ 'training/skipped_steps': 0 });
      expect('critic/vf_explained_var' in metrics).toBe(needsOf(name).includes('values'));
    }
  });

  it.each(refused)('%s: the recipe is refused, because no run gives what it needs', (name) => {
    expect(issuesOf(name)).toMatchObject([{ message: 'not built yet' }]);
  });
});
