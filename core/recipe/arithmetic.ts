/** Computes the sizes of a recipe's batches, and checks that they are consistent. Sizes count prompts, as in verl. */
import { limitFor, tokensOfPass } from './pass.ts';
import { runKinds, samplesResponses } from '../run-kinds.ts';
import { needsOfEstimator } from '../rl/names.ts';
import { hasOwnSampler, tracksPrompts } from './components.ts';
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
  /** Mini-batches per epoch over the batch. */
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
  const { responsesPerRow, samples } = runKinds[recipe.kind];
  const prompts = recipe.data.train_batch_size;
  const responsesPerPrompt = samples ? recipe.rollout.n : responsesPerRow;
  const miniBatchPrompts = samples ? recipe.actor.ppo_mini_batch_size : prompts;
  const miniBatches = Math.ceil(prompts / miniBatchPrompts);
  const epochs = samples ? recipe.actor.ppo_epochs : 1;
  const longestSequence = samples
    ? recipe.data.max_prompt_length + recipe.data.max_response_length
    : recipe.data.max_length;
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
  return steps ?? Math.max(1, Math.floor((rows * epochs) / promptsPerIteration(recipe)));
}

/** Are the prompts of a batch drawn from more, by weights? */
const weighsPrompts = (recipe: Recipe): boolean => tracksPrompts(recipe) || hasOwnSampler(recipe);

/**
 * Prompts that are taken at a time: with dynamic sampling a wave; where the batch takes some of them, all; else the
 * batch.
 */
export function promptsPerWave(recipe: Recipe): number {
  const { kind, data, algorithm } = recipe;
  if (kind === 'rl' && data.oversample_factor > 1) return Math.round(data.train_batch_size * data.oversample_factor);
  const takesOthers = algorithm.filter_groups.enable || weighsPrompts(recipe);
  return takesOthers ? (data.gen_batch_size ?? data.train_batch_size) : data.train_batch_size;
}

/** Prompts by which an iteration moves on in the data, without those that replace others. */
export const promptsPerIteration = (recipe: Recipe): number =>
  recipe.algorithm.filter_groups.enable ? recipe.data.train_batch_size : promptsPerWave(recipe);

/** Without a limit of the recipe, dynamic sampling gives up after this many waves, if each row was sampled. */
const fewestWavesToGiveUp = 10;

/**
 * Waves of one iteration, at most. As in verl the first one counts. verl has no limit for
 * `max_num_gen_batches: 0`; here one pass over the rows is enough, because the same policy will hardly answer the same
 * prompts with other scores.
 */
export function mostWaves(recipe: Recipe, rows: number): number {
  const { enable, max_num_gen_batches: limit } = recipe.algorithm.filter_groups;
  if (!enable) return 1;
  return limit > 0 ? limit : Math.max(fewestWavesToGiveUp, Math.ceil(rows / promptsPerWave(recipe)));
}

/** Sizes that do not divide or do not fit, each with the nearest valid values. */
export function arithmeticIssues(recipe: Recipe): RecipeIssue[] {
  return !samplesResponses(recipe.kind)
    ? sequenceIssues(recipe)
    : [
        ...groupIssues(recipe),
        ...waveIssues(recipe),
        ...oversamplingIssues(recipe),
        ...divisionIssues(recipe),
        ...sequenceIssues(recipe),
      ];
}

function groupIssues(recipe: Recipe): RecipeIssue[] {
  const { adv_estimator: estimator } = recipe.algorithm;
  if (!needsOfEstimator(estimator).includes('groupsOfTwo') || recipe.rollout.n >= 2) return [];
  const message = `${estimator} compares the responses of one prompt, so it needs 2 or more of them`;
  return [{ path: 'rollout.n', message, expected: 'integer >= 2', received: '1', hint: 'rollout.n=8 is usual' }];
}

function oversamplingIssues(recipe: Recipe): RecipeIssue[] {
  const { data, algorithm } = recipe;
  const { oversample_factor: factor, train_batch_size: batch } = data;
  const filter = data.filter_accuracy ? 'filter_accuracy' : data.filter_truncate ? 'filter_truncate' : undefined;
  if (factor === 1) {
    if (filter === undefined) return [];
    const message = 'all sampled prompts are trained on, so there is nothing to choose';
    const hint = 'data.oversample_factor=4 is usual in PRIME';
    return [{ path: `data.${filter}`, message, expected: 'false', received: 'true', hint }];
  }
  const issues: RecipeIssue[] = [];
  if (!Number.isInteger(batch * factor))
    issues.push({
      path: 'data.oversample_factor',
      message: `${factor} times data.train_batch_size ${batch} is no number of prompts`,
      hint: `use ${Math.ceil(factor)}`,
    });
  if (data.filter_accuracy && data.accuracy_lower_bound > data.accuracy_upper_bound)
    issues.push({
      path: 'data.accuracy_lower_bound',
      message: 'no mean lies between the bounds',
      expected: `number <= ${data.accuracy_upper_bound}`,
      received: `${data.accuracy_lower_bound}`,
    });
  const others = [
    { is: algorithm.filter_groups.enable, path: 'algorithm.filter_groups.enable', value: ['false', 'true'] },
    { is: data.gen_batch_size !== null, path: 'data.gen_batch_size', value: ['null', `${data.gen_batch_size}`] },
  ] as const;
  for (const { is, path, value } of others) {
    const message = 'data.oversample_factor says how many prompts are sampled, and chooses among them';
    if (is) issues.push({ path, message, expected: value[0], received: value[1] });
  }
  return issues;
}

function waveIssues(recipe: Recipe): RecipeIssue[] {
  const { data, rollout, algorithm } = recipe;
  const { filter_groups: filter } = algorithm;
  const { gen_batch_size: wave, train_batch_size: batch } = data;
  if (!filter.enable) {
    if (wave === null || wave === batch) return [];
    if (weighsPrompts(recipe)) {
      if (wave > batch) return [];
      const message = 'the prompts of a batch are drawn from these, so they cannot be fewer';
      return [{ path: 'data.gen_batch_size', message, expected: `integer >= ${batch}`, received: `${wave}` }];
    }
    const message =
      'only dynamic sampling, the estimator spo and data.sampler take another number of prompts than they train on';
    const hint = 'leave it out, or set algorithm.filter_groups.enable=true';
    return [{ path: 'data.gen_batch_size', message, expected: `null or ${batch}`, received: `${wave}`, hint }];
  }
  const issues: RecipeIssue[] = [];
  if (rollout.n < 2) {
    const message = 'dynamic sampling compares the responses to one prompt, so it needs 2 or more of them';
    issues.push({ path: 'rollout.n', message, expected: 'integer >= 2', received: `${rollout.n}` });
  }
  if (filter.metric === 'seq_final_reward' || filter.metric === 'seq_reward') {
    const message = `${filter.metric} is known only after the sampling, when groups have been chosen`;
    issues.push({ path: 'algorithm.filter_groups.metric', message, hint: 'use score, or acc' });
  }
  const [limit, prompts] = [filter.max_num_gen_batches, wave ?? batch];
  if (limit > 0 && limit * prompts < batch) {
    const message = `${limit} times ${prompts} prompts are fewer than the ${batch} of a batch`;
    const expected = `integer >= ${Math.ceil(batch / prompts)}`;
    issues.push({ path: 'algorithm.filter_groups.max_num_gen_batches', message, expected, received: `${limit}` });
  }
  return issues;
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
  const limit = tokensOfPass(recipe);
  if (longestSequence <= limit) return [];
  const least = limitFor(longestSequence, recipe);
  const parts = samplesResponses(recipe.kind) ? 'data.max_prompt_length + data.max_response_length' : 'data.max_length';
  return [
    {
      path: 'actor.ppo_max_token_len_per_gpu',
      message: `one sequence may have ${longestSequence} tokens (${parts}), more than one forward pass takes (${limit})`,
      expected: `integer >= ${least}`,
      received: `${recipe.actor.ppo_max_token_len_per_gpu}`,
      hint: `use actor.ppo_max_token_len_per_gpu=${least} or more, or shorter sequences`,
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
