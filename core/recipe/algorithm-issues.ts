/** Keys of the algorithm that contradict each other, so that a run would not do what its recipe says. */
import { samplesResponses } from '../run-kinds.ts';
import { batchArithmetic } from './arithmetic.ts';
import { rewardManagerOf, tracksPrompts, trainedComponents } from './components.ts';
import { InvalidInputError } from '../errors.ts';
import { needsOfEstimator } from '../rl/names.ts';
import { parseRolloutCorrection } from '../rl/rollout-correction/options.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

export function algorithmIssues(recipe: Recipe): RecipeIssue[] {
  if (!samplesResponses(recipe.kind)) return [...warmupIssues(recipe), ...ownTrainerIssues(recipe)];
  const checks = [
    klIssues,
    warmupIssues,
    ownTrainerIssues,
    overlongIssues,
    componentIssues,
    trackerIssues,
    thresholdIssues,
    bypassIssues,
  ];
  return checks.flatMap((check) => check(recipe));
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

function ownTrainerIssues(recipe: Recipe): RecipeIssue[] {
  if (!recipe.critic.own_trainer) return [];
  const path = 'critic.own_trainer';
  if (!trainedComponents(recipe).includes('critic'))
    return [
      {
        path,
        message: 'there is no critic, so another trainer would have nothing to train',
        expected: 'false',
        received: 'true',
        hint: 'set it to false, or choose an estimator with a critic: algorithm.adv_estimator=gae',
      },
    ];
  if (!trainedComponents(recipe).includes('rewardModel') || recipe.reward.prime.update !== 'before') return [];
  const message = 'the trainer of the critic would need returns that the update makes from the new reward model';
  return [{ path, message, hint: 'set it to false, or reward.prime.update=after' }];
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

/**
 * What the estimator spo, which compares a score between 0 and 1 with those of earlier iterations, cannot be used with.
 */
function trackerIssues(recipe: Recipe): RecipeIssue[] {
  if (!tracksPrompts(recipe)) return [];
  const { algorithm, data, reward } = recipe;
  const refused = (path: string, because: string) => ({
    path,
    message: `${algorithm.adv_estimator} ${because}`,
    expected: 'false',
    received: 'true',
  });
  const { responses } = batchArithmetic(recipe);
  return [
    ...(algorithm.use_kl_in_reward
      ? [
          {
            ...refused('algorithm.use_kl_in_reward', 'compares scores, and the penalty is no part of a score'),
            hint: 'use actor.use_kl_loss=true',
          },
        ]
      : []),
    ...(reward.overlong_buffer.enable
      ? [refused('reward.overlong_buffer.enable', 'counts successes between 0 and 1, and the penalty is below 0')]
      : []),
    ...(algorithm.filter_groups.enable
      ? [
          refused(
            'algorithm.filter_groups.enable',
            'learns from single responses, and dynamic sampling from groups; it chooses prompts by what they scored before',
          ),
        ]
      : []),
    ...(data.curriculum.enable
      ? [refused('data.curriculum.enable', 'chooses prompts by what they scored before, as a curriculum does')]
      : []),
    ...(responses < 2
      ? [
          {
            path: 'data.train_batch_size',
            message: `${algorithm.adv_estimator} normalises over a batch of two responses or more`,
            expected: 'integer >= 2',
            received: `${data.train_batch_size}`,
          },
        ]
      : []),
  ];
}

/** Thresholds and statistics that cannot be read. */
function thresholdIssues({ algorithm }: Recipe): RecipeIssue[] {
  const { rollout_correction: keys } = algorithm;
  const parts = [
    () => parseRolloutCorrection({ ...keys, rollout_rs: null }),
    () => parseRolloutCorrection({ ...keys, rollout_is: null }),
  ];
  return parts.flatMap((parse) => {
    try {
      parse();
      return [];
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      const [, name = 'rollout_is', message = error.message] = /^(rollout_\w+):? (.*)$/s.exec(error.message) ?? [];
      return [{ path: `algorithm.rollout_correction.${name}`, message, ...(error.hint && { hint: error.hint }) }];
    }
  });
}

/** Losses of whole responses, without a loss per token. */
const readsNoWeights: ReadonlySet<string> = new Set(['sppo', 'gvpo', 'flowrl', 'online_dpo']);

/**
 * Refuses a run without old log-probs of the trainer unless its loss is `bypass_mode`, the only one that can compare
 * the policies then.
 */
function bypassIssues({ algorithm, actor }: Recipe): RecipeIssue[] {
  const keys = algorithm.rollout_correction;
  const { loss_mode: mode } = actor.policy_loss;
  const path = 'algorithm.rollout_correction';
  if (mode === 'bypass_mode' && !keys.bypass_mode) {
    const message = 'the loss bypass_mode compares the policy with the one that sampled';
    return [{ path: `${path}.bypass_mode`, message, expected: 'true', received: 'false' }];
  }
  if (keys.bypass_mode && mode !== 'bypass_mode' && (keys.rollout_is ?? keys.rollout_rs) !== null)
    return [
      {
        path: 'actor.policy_loss.loss_mode',
        message: `with ${path}.bypass_mode, only the loss bypass_mode applies importance weights and rejection`,
        expected: 'bypass_mode',
        received: mode,
        hint: `set it to bypass_mode, or ${path}.bypass_mode to false`,
      },
    ];
  if (readsNoWeights.has(mode) && keys.rollout_is !== null)
    return [
      {
        path: `${path}.rollout_is`,
        message: `the loss ${mode} reads no importance weights`,
        expected: 'null',
        received: keys.rollout_is,
      },
    ];
  if (keys.bypass_mode && needsOfEstimator(algorithm.adv_estimator).includes('sumPiSquared'))
    return [
      {
        path: `${path}.bypass_mode`,
        message: `${algorithm.adv_estimator} reads the old policy's probabilities of all tokens, and bypass_mode does not compute them`,
        expected: 'false',
        received: 'true',
      },
    ];
  const divides = keys.rollout_is !== null && keys.rollout_is_batch_normalize && keys.loss_type === 'reinforce';
  if (mode !== 'bypass_mode' || !divides) return [];
  return [
    {
      path: `${path}.rollout_is_batch_normalize`,
      message:
        'the loss bypass_mode sees one micro-batch at a time, so the mean weight would depend on how a batch is packed',
      expected: 'false',
      received: 'true',
    },
  ];
}
