// @module-tag long
/**
 * Every advantage estimator with every policy loss, by the registries: the pair trains for two iterations of two steps,
 * in one process, or a recipe that names it is refused with the reason.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mergeTrees, runIssues } from '../../core/recipe/index.ts';
import { ADVANTAGE_NAMES, POLICY_LOSS_NAMES } from '../../core/rl/names.ts';
import { whyUnsuitable } from '../../core/rl/unsuitable-pairs.ts';
import { recipeWith, soundMetrics, WAITING, withEstimator, withLoss } from '../algorithm-recipes.ts';
import { InProcessLoop } from '../in-process-loop.ts';

const loop = new InProcessLoop();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

const pairs = POLICY_LOSS_NAMES.flatMap((loss) =>
  ADVANTAGE_NAMES.map((estimator) => {
    const recipe = mergeTrees(mergeTrees({ rollout: { n: 4 } }, withLoss(loss)), withEstimator(estimator));
    return { loss, estimator, recipe, issues: runIssues(recipeWith(recipe)) };
  }),
);
const refused = pairs.filter(({ issues }) => issues.length > 0);
const trained = pairs.filter(({ issues }) => issues.length === 0);

describe('two iterations have finite metrics, change the weights and skip no step with', () => {
  it.each(trained)('$loss and $estimator', async ({ recipe }) => {
    const { iterations, weights } = await loop.completed(recipe);
    expect(iterations).toHaveLength(2);
    soundMetrics(iterations);
    expect(new Set(weights).size).toBe(3);
  });
});

describe('a recipe is refused, with the reason, that names', () => {
  it.each(refused)('$loss and $estimator', ({ loss, estimator, issues }) => {
    const reason = whyUnsuitable(estimator, loss);
    const message = WAITING[estimator] ?? reason;
    expect(message).toBeDefined();
    expect(issues.map((issue) => ({ path: issue.path, message: issue.message }))).toContainEqual({
      path: 'algorithm.adv_estimator',
      message,
    });
  });
});

it('no pair is left out, and no estimator or loss is refused with every partner', () => {
  expect(trained.length + refused.length).toBe(ADVANTAGE_NAMES.length * POLICY_LOSS_NAMES.length);
  expect(new Set(trained.map(({ loss }) => loss)).size).toBe(POLICY_LOSS_NAMES.length);
  const fed = new Set<string>(trained.map(({ estimator }) => estimator));
  expect(ADVANTAGE_NAMES.filter((name) => !fed.has(name))).toEqual(Object.keys(WAITING));
  expect(Object.keys(WAITING).length).toBeLessThanOrEqual(8);
});
