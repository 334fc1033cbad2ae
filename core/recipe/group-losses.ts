/** Checks of policy losses that read whole groups, and of their advantage estimators. */
import { limitFor, tokensOfPass } from './pass.ts';
import { isModulePath } from '../module-path.ts';
import { needsOfLoss } from '../rl/names.ts';
import { whyUnsuitable } from '../rl/unsuitable-pairs.ts';
import { batchArithmetic } from './arithmetic.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

/** The loss that reads all responses to a prompt at once, if there is one. They must lie in one micro-batch. */
export function groupLossOf({ actor, algorithm, reward }: Recipe): string | undefined {
  const { loss_mode: loss } = actor.policy_loss;
  if (needsOfLoss(loss).includes('groups')) return loss;
  const comparesGroups = algorithm.adv_estimator === 'prime' && reward.prime.loss_type !== 'ce';
  return comparesGroups ? `reward.prime.loss_type ${reward.prime.loss_type}` : undefined;
}

export function groupLossIssues(recipe: Recipe): RecipeIssue[] {
  if (recipe.kind !== 'rl') return [];
  return [pairIssue, groupSizeIssue, groupTokensIssue].flatMap((check) => check(recipe) ?? []);
}

function pairIssue({ algorithm, actor }: Recipe): RecipeIssue | undefined {
  const { adv_estimator: estimator } = algorithm;
  const { loss_mode: loss } = actor.policy_loss;
  const message = isModulePath(estimator) || isModulePath(loss) ? undefined : whyUnsuitable(estimator, loss);
  if (message === undefined) return undefined;
  const hint = 'use algorithm.adv_estimator=grpo, or another loss: actor.policy_loss.loss_mode=vanilla';
  return { path: 'algorithm.adv_estimator', message, expected: 'another estimator', received: estimator, hint };
}

function groupSizeIssue(recipe: Recipe): RecipeIssue | undefined {
  const { n } = recipe.rollout;
  const { loss_mode: loss } = recipe.actor.policy_loss;
  const issue = (message: string, expected: string) => ({ path: 'rollout.n', message, expected, received: `${n}` });
  if (loss === 'online_dpo' && n !== 2) return issue('online_dpo compares two responses to a prompt', '2');
  const groupLoss = groupLossOf(recipe);
  if (groupLoss !== undefined && n < 2) return issue(`${groupLoss} compares the responses to a prompt`, 'integer >= 2');
  return undefined;
}

/** The longest group must fit into one forward pass. */
function groupTokensIssue(recipe: Recipe): RecipeIssue | undefined {
  const groupLoss = groupLossOf(recipe);
  if (groupLoss === undefined) return undefined;
  const { data, rollout, actor } = recipe;
  const sharesPrompt = rollout.n > 1 && actor.use_prefix_grouper;
  const tokens = sharesPrompt
    ? data.max_prompt_length + rollout.n * data.max_response_length
    : rollout.n * batchArithmetic(recipe).longestSequence;
  const limit = tokensOfPass(recipe);
  if (tokens <= limit) return undefined;
  const least = limitFor(tokens, recipe);
  return {
    path: 'actor.ppo_max_token_len_per_gpu',
    message: `${groupLoss} reads the ${rollout.n} responses to a prompt at once: they may have ${tokens} tokens together, more than one forward pass takes (${limit})`,
    expected: `integer >= ${least}`,
    received: `${actor.ppo_max_token_len_per_gpu}`,
    hint: `use actor.ppo_max_token_len_per_gpu=${least} or more, or a smaller rollout.n`,
  };
}
