/** Keys of the algorithm that contradict each other, so that a run would not do what its recipe says. */
import { batchArithmetic } from './arithmetic.ts';
import { trainedComponents } from './components.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

export function algorithmIssues(recipe: Recipe): RecipeIssue[] {
  if (recipe.kind === 'sft') return [...warmupIssues(recipe)];
  return [...klIssues(recipe), ...warmupIssues(recipe)];
}

function klIssues(recipe: Recipe): RecipeIssue[] {
  const { algorithm } = recipe;
  if (!algorithm.use_kl_in_reward) return [];
  const issues: RecipeIssue[] = [];
  if (algorithm.adv_estimator === 'gdpo') {
    const message = 'gdpo reads the components of the score and not the reward, so the penalty would have no effect';
    const path = 'algorithm.use_kl_in_reward';
    issues.push({ path, message, expected: 'false', received: 'true', hint: 'use actor.use_kl_loss=true' });
  }
  const { responses } = batchArithmetic(recipe);
  const { type, horizon } = algorithm.kl_ctrl;
  if (type === 'adaptive' && horizon * 5 <= responses)
    issues.push({
      path: 'algorithm.kl_ctrl.horizon',
      message: `one batch of ${responses} responses could turn the coefficient to 0 or below: it moves by up to responses / (5 · horizon)`,
      expected: `number > ${responses / 5}`,
      received: `${horizon}`,
      hint: 'algorithm.kl_ctrl.horizon=10000 is usual',
    });
  return issues;
}

function warmupIssues(recipe: Recipe): RecipeIssue[] {
  const { critic_warmup: warmup } = recipe.trainer;
  if (warmup <= 1 || trainedComponents(recipe).includes('critic')) return [];
  return [
    {
      path: 'trainer.critic_warmup',
      message: `there is no critic, so iterations 1 to ${warmup - 1} would train nothing`,
      expected: '0',
      received: `${warmup}`,
      hint: 'set it to 0, or choose an estimator with a critic: algorithm.adv_estimator=gae',
    },
  ];
}
