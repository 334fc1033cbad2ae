/** Computes the sizes of a recipe's batches, and checks that they are consistent. Sizes count prompts, as in verl. */
import { needsOfEstimator } from '../rl/names.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

/** Everything per iteration. */
export interface BatchArithmetic {
  readonly prompts: number;
  readonly responsesPerPrompt: number;
  /** Equals prompts × responsesPerPrompt. */
  readonly responses: number;
  readonly miniBatchPrompts: number;
  readonly miniBatchResponses: number;
  /** Per epoch over the batch. */
  readonly miniBatches: number;
  readonly epochs: number;
  /** miniBatches × epochs. */
  readonly optimizerSteps: number;
  /** Maximum number of tokens in one sequence. */
  readonly longestSequence: number;
  /** Equals responses × longestSequence: no iteration trains more tokens than this. */
  readonly mostTokens: number;
}

export function batchArithmetic(recipe: Recipe): BatchArithmetic {
  const sft = recipe.kind === 'sft';
  const prompts = recipe.data.train_batch_size;
  const responsesPerPrompt = sft ? 1 : recipe.rollout.n;
  const miniBatchPrompts = sft ? prompts : recipe.actor.ppo_mini_batch_size;
  const miniBatches = Math.ceil(prompts / miniBatchPrompts);
  const epochs = sft ? 1 : recipe.actor.ppo_epochs;
  const longestSequence = sft
    ? recipe.data.max_length
    : recipe.data.max_prompt_length + recipe.data.max_response_length;
  return {
    prompts,
    responsesPerPrompt,
    responses: prompts * responsesPerPrompt,
    miniBatchPrompts,
    miniBatchResponses: miniBatchPrompts * responsesPerPrompt,
    miniBatches,
    epochs,
    optimizerSteps: miniBatches * epochs,
    longestSequence,
    mostTokens: prompts * responsesPerPrompt * longestSequence,
  };
}

/** Iterations of the whole run. `rows`: number of training rows that are used. */
export function totalIterations(recipe: Recipe, rows: number): number {
  const { total_training_steps: steps, total_epochs: epochs } = recipe.trainer;
  return steps ?? Math.max(1, Math.floor((rows * epochs) / recipe.data.train_batch_size));
}

/** Sizes that do not divide or do not fit, each with the nearest valid values. */
export function arithmeticIssues(recipe: Recipe): RecipeIssue[] {
  return recipe.kind === 'sft'
    ? sequenceIssues(recipe)
    : [...groupIssues(recipe), ...divisionIssues(recipe), ...sequenceIssues(recipe)];
}

function groupIssues(recipe: Recipe): RecipeIssue[] {
  const { adv_estimator: estimator } = recipe.algorithm;
  if (!needsOfEstimator(estimator).includes('groupsOfTwo') || recipe.rollout.n >= 2) return [];
  const message = `${estimator} compares the responses of one prompt, so it needs 2 or more of them`;
  return [{ path: 'rollout.n', message, expected: 'integer >= 2', received: '1', hint: 'rollout.n=8 is usual' }];
}

function divisionIssues(recipe: Recipe): RecipeIssue[] {
  const batch = recipe.data.train_batch_size;
  const mini = recipe.actor.ppo_mini_batch_size;
  if (batch % mini === 0) return [];
  const { below, above } = nearestDivisors(batch, mini);
  const divisors = above === undefined ? `${below}` : `${below} or ${above}`;
  const multiples = batch < mini ? `${mini}` : `${batch - (batch % mini)} or ${batch - (batch % mini) + mini}`;
  return [
    {
      path: 'actor.ppo_mini_batch_size',
      message: `data.train_batch_size ${batch} prompts do not divide into mini-batches of ${mini} prompts`,
      expected: divisors,
      received: `${mini}`,
      hint: `use actor.ppo_mini_batch_size ${divisors}, or data.train_batch_size ${multiples}`,
    },
  ];
}

function sequenceIssues(recipe: Recipe): RecipeIssue[] {
  const { longestSequence } = batchArithmetic(recipe);
  const limit = recipe.actor.ppo_max_token_len_per_gpu;
  if (longestSequence <= limit) return [];
  const parts = recipe.kind === 'sft' ? 'data.max_length' : 'data.max_prompt_length + data.max_response_length';
  return [
    {
      path: 'actor.ppo_max_token_len_per_gpu',
      message: `one sequence may have ${longestSequence} tokens (${parts}), more than one forward pass takes (${limit})`,
      expected: `integer >= ${longestSequence}`,
      received: `${limit}`,
    },
  ];
}

/** The divisors of `total` next to `value`: the largest below it and, if there is one, the smallest above. */
export function nearestDivisors(total: number, value: number): { readonly below: number; readonly above?: number } {
  let below = Math.min(value, total);
  while (total % below !== 0) below -= 1;
  let above = value;
  while (above <= total && total % above !== 0) above += 1;
  return above <= total ? { below, above } : { below };
}
