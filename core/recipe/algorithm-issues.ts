/** Keys of the algorithm that contradict each other, so that a run would not do what its recipe says. */
import { batchArithmetic } from './arithmetic.ts';
import { rewardManagerOf, trainedComponents } from './components.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

export function algorithmIssues(recipe: Recipe): RecipeIssue[] {
  if (recipe.kind === 'sft') return [...warmupIssues(recipe)];
  return [klIssues, warmupIssues, overlongIssues, componentIssues].flatMap((check) => check(recipe));
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

function overlongIssues(recipe: Recipe): RecipeIssue[] {
  const { overlong_buffer: buffer, reward_kwargs: settings } = recipe.reward;
  const limit = recipe.data.max_response_length;
  const issues: RecipeIssue[] = [];
  if ('overlong_buffer_cfg' in settings)
    issues.push({
      path: 'reward.reward_kwargs.overlong_buffer_cfg',
      message: 'the scorer would get it as a setting, and no response a penalty',
      hint: 'enable, len and penalty_factor belong in reward.overlong_buffer; the limit is data.max_response_length',
    });
  if (!buffer.enable) return issues;
  const manager = rewardManagerOf(recipe);
  if (manager !== 'dapo')
    issues.push({
      path: 'reward.reward_manager.name',
      message: `the reward manager ${manager} adds no penalty for long responses`,
      expected: 'dapo',
      received: manager,
      hint: 'set it to dapo, or reward.overlong_buffer.enable to false',
    });
  if (buffer.len === null || buffer.len > limit)
    issues.push({
      path: 'reward.overlong_buffer.len',
      message: `the penalty grows in the last part of the ${limit} tokens that a response may have`,
      expected: `integer from 1 to ${limit}`,
      received: `${buffer.len}`,
    });
  return issues;
}

function componentIssues(recipe: Recipe): RecipeIssue[] {
  const { adv_estimator: estimator, gdpo_reward_keys: keys, gdpo_reward_weights: weights } = recipe.algorithm;
  const manager = rewardManagerOf(recipe);
  const issues: RecipeIssue[] = [];
  if (estimator === 'gdpo' && manager !== 'gdpo')
    issues.push({
      path: 'reward.reward_manager.name',
      message: `the estimator gdpo reads several scores by name, and the reward manager ${manager} gives one`,
      expected: 'gdpo or null',
      received: manager,
    });
  if ((estimator === 'gdpo' || manager === 'gdpo') && keys === null)
    issues.push({
      path: 'algorithm.gdpo_reward_keys',
      message: 'gdpo needs the names of the scores that it adds up',
      expected: 'list of names',
      received: 'null',
      hint: 'the names of numbers that the scorer returns, such as [acc, format]',
    });
  if (weights !== null && weights.length !== (keys?.length ?? 0))
    issues.push({
      path: 'algorithm.gdpo_reward_weights',
      message: 'expected a weight for each of algorithm.gdpo_reward_keys',
      expected: `${keys?.length ?? 0} numbers, or null`,
      received: `${weights.length}`,
    });
  return issues;
}
