/** Checks that the schema cannot express: keys that contradict each other. `plan` and `run` make them. */
import { arithmeticIssues } from './arithmetic.ts';
import { InvalidRecipeError, type RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';
import { readsValues } from './components.ts';
import { notBuiltYet } from './not-built.ts';

/** Everything that prevents running the recipe. Empty: it can be run, as far as the recipe alone shows. */
export function runIssues(recipe: Recipe): RecipeIssue[] {
  return [...notBuiltYet(recipe), ...arithmeticIssues(recipe), ...contradictions(recipe)];
}

/** Throws InvalidRecipeError when there are any. */
export function assertRunnable(recipe: Recipe): void {
  const issues = runIssues(recipe);
  if (issues.length > 0) throw new InvalidRecipeError(issues);
}

function contradictions(recipe: Recipe): RecipeIssue[] {
  return [...scorerIssues(recipe), ...poolIssues(recipe), ...samplingIssues(recipe), ...criticIssues(recipe)];
}

function scorerIssues(recipe: Recipe): RecipeIssue[] {
  const { custom_reward_function: custom } = recipe.reward;
  if (recipe.deterministic !== true || custom.path === null || custom.deterministic) return [];
  return [
    {
      path: 'reward.custom_reward_function.deterministic',
      message: 'a deterministic run needs a scorer that is declared to depend on its arguments only',
      expected: 'true',
      received: 'false',
      hint: 'set it to true, or write deterministic: replay',
    },
  ];
}

function poolIssues(recipe: Recipe): RecipeIssue[] {
  const roles = new Set(Object.values(recipe.fleet.pools).flatMap((pool) => pool.roles));
  const needed = recipe.kind === 'sft' ? (['trainer'] as const) : (['trainer', 'rollout', 'reward'] as const);
  const missing = needed.filter((role) => !roles.has(role));
  if (missing.length === 0) return [];
  return [
    {
      path: 'fleet.pools',
      message: `no pool has the role ${missing.join(', ')}`,
      hint: 'add it to the roles of a pool',
    },
  ];
}

function criticIssues(recipe: Recipe): RecipeIssue[] {
  if (recipe.critic.enable !== false || !readsValues(recipe)) return [];
  return [
    {
      path: 'critic.enable',
      message: `algorithm.adv_estimator ${recipe.algorithm.adv_estimator} needs the values of a critic`,
      expected: 'null or true',
      received: 'false',
      hint: 'leave critic.enable out, or choose an estimator without a critic: grpo',
    },
  ];
}

function samplingIssues(recipe: Recipe): RecipeIssue[] {
  const { temperature, do_sample: sample } = recipe.rollout;
  if (recipe.kind === 'sft' || (sample && temperature > 0)) return [];
  const path = sample ? 'rollout.temperature' : 'rollout.do_sample';
  return [
    {
      path,
      message: 'greedy responses to one prompt are all equal, so there is no learning signal',
      hint: 'use rollout.temperature=1',
    },
  ];
}
