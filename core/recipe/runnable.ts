/** Checks that the schema cannot express: keys that contradict each other. `plan` and `run` make them. */
import { limitFor, tokensOfPass } from './pass.ts';
import { algorithmIssues } from './algorithm-issues.ts';
import { runKinds, samplesResponses } from '../run-kinds.ts';
import { arithmeticIssues } from './arithmetic.ts';
import { InvalidRecipeError, type RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';
import { readsValues } from './components.ts';
import { distillationIssues } from './distillation-issues.ts';
import { endpointIssues } from './endpoint-issues.ts';
import { groupLossIssues } from './group-losses.ts';
import { loraIssues } from './lora-issues.ts';
import { divisionIssues } from './division-issues.ts';
import { microBatchIssues } from './micro-batch-issues.ts';
import { mixtureIssues } from './mixture-issues.ts';
import { notBuiltYet } from './not-built.ts';
import { rewardModelIssues } from './reward-model-issues.ts';
import { serverIssues } from './server-issues.ts';

/** Everything that prevents running the recipe. Empty: it can be run, as far as the recipe alone shows. */
export function runIssues(recipe: Recipe): RecipeIssue[] {
  return [...notBuiltYet(recipe), ...arithmeticIssues(recipe), ...algorithmIssues(recipe), ...contradictions(recipe)];
}

/** Throws InvalidRecipeError when there are any. */
export function assertRunnable(recipe: Recipe): void {
  const issues = runIssues(recipe);
  if (issues.length > 0) throw new InvalidRecipeError(issues);
}

function contradictions(recipe: Recipe): RecipeIssue[] {
  const checks = [
    scorerIssues,
    listIssues,
    sandboxIssues,
    endpointIssues,
    samplingIssues,
    criticIssues,
    pfPpoIssues,
    positiveNllIssues,
    lossIssues,
    groupLossIssues,
    microBatchIssues,
    divisionIssues,
    distillationIssues,
    bestMetricIssues,
    weightIssues,
    curriculumIssues,
    samplerIssues,
    pairIssues,
    rewardModelIssues,
    loraIssues,
    mixtureIssues,
    serverIssues,
  ];
  return checks.flatMap((check) => check(recipe));
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

function listIssues({ kind, reward }: Recipe): RecipeIssue[] {
  const { name } = reward.reward_manager;
  if (!samplesResponses(kind) || name !== 'batch' || reward.custom_reward_function.path !== null) return [];
  return [
    {
      path: 'reward.reward_manager.name',
      message: 'batch passes lists to a scorer of your own; built-in scorers take one response',
      expected: 'naive, or reward.custom_reward_function.path',
      received: 'batch',
    },
  ];
}

function sandboxIssues({ kind, reward }: Recipe): RecipeIssue[] {
  const { path } = reward.custom_reward_function;
  const { url } = reward.sandbox_fusion;
  if (!samplesResponses(kind)) return [];
  return [
    ...(reward.sandbox && path === null
      ? [
          {
            path: 'reward.sandbox',
            message: 'it is for your own scorer; built-in scorers run no code of others outside a sandbox',
            expected: 'false, or reward.custom_reward_function.path',
            received: 'true',
          },
        ]
      : []),
    ...(url !== null && !/^https?:\/\/[^/\s]+/.test(url)
      ? [
          {
            path: 'reward.sandbox_fusion.url',
            message: 'this is no address of a service',
            expected: 'http://… or https://…, with the path: http://host:8080/run_code',
            received: url,
          },
        ]
      : []),
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

/** verl ignores the key with other estimators. */
function pfPpoIssues(recipe: Recipe): RecipeIssue[] {
  const { use_pf_ppo: asked, adv_estimator: estimator } = recipe.algorithm;
  if (!asked || readsValues(recipe)) return [];
  const message = `policy filtration draws single samples, and ${estimator} compares the responses to a prompt`;
  const hint = 'use algorithm.adv_estimator=gae or vapo';
  return [{ path: 'algorithm.use_pf_ppo', message, expected: 'false', received: 'true', hint }];
}

function positiveNllIssues({ kind, actor, distillation }: Recipe): RecipeIssue[] {
  const { positive_nll_coef: coef } = actor;
  const isRead = samplesResponses(kind) && (!distillation.enabled || distillation.distillation_loss.use_task_rewards);
  if (coef === 0 || isRead) return [];
  const message = 'there are no scored responses that the policy could imitate, so it would have no effect';
  return [{ path: 'actor.positive_nll_coef', message, expected: '0', received: `${coef}`, hint: 'leave it out' }];
}

function lossIssues({ actor }: Recipe): RecipeIssue[] {
  const { loss_mode: mode, dro_beta: beta } = actor.policy_loss;
  if (mode !== 'dro' || beta !== null) return [];
  const message = 'the loss dro needs the weight of its squared log-ratio';
  const hint = 'set it to a number above 0: actor.policy_loss.dro_beta=0.1';
  return [{ path: 'actor.policy_loss.dro_beta', message, expected: 'number > 0', received: 'null', hint }];
}

function samplingIssues(recipe: Recipe): RecipeIssue[] {
  const { temperature, do_sample: sample } = recipe.rollout;
  if (!samplesResponses(recipe.kind) || (sample && temperature > 0)) return [];
  const path = sample ? 'rollout.temperature' : 'rollout.do_sample';
  return [
    {
      path,
      message: 'greedy responses to one prompt are all equal, so there is no learning signal',
      hint: 'use rollout.temperature=1',
    },
  ];
}

function curriculumIssues({ kind, data }: Recipe): RecipeIssue[] {
  if (!data.curriculum.enable || samplesResponses(kind)) return [];
  const message = 'a curriculum needs the scores of responses, and this run samples none';
  return [{ path: 'data.curriculum.enable', message, expected: 'false', received: 'true' }];
}

/** A sampler of the user's own decides alone which prompts come. */
function samplerIssues({ kind, data, algorithm }: Recipe): RecipeIssue[] {
  if (data.sampler === null) return [];
  const refused = (path: string, message: string, expected: string, received: string) => [
    { path, message, expected, received },
  ];
  if (!samplesResponses(kind))
    return refused('data.sampler', 'it needs the scores of responses, and this run samples none', 'null', data.sampler);
  const message = 'data.sampler decides which prompts come';
  return [
    ...(data.curriculum.enable ? refused('data.curriculum.enable', message, 'false', 'true') : []),
    ...(algorithm.filter_groups.enable ? refused('algorithm.filter_groups.enable', message, 'false', 'true') : []),
    ...(data.oversample_factor > 1 ? refused('data.oversample_factor', message, '1', `${data.oversample_factor}`) : []),
    ...(algorithm.adv_estimator === 'spo' ? refused('algorithm.adv_estimator', message, 'another one', 'spo') : []),
  ];
}

function weightIssues({ data }: Recipe): RecipeIssue[] {
  const [files, weights] = [[data.train_files].flat().length, data.train_file_weights?.length];
  if (weights === undefined || weights === files) return [];
  return [
    {
      path: 'data.train_file_weights',
      message: 'expected a weight for each of data.train_files',
      expected: `${files}`,
      received: `${weights}`,
    },
  ];
}

/** A pair is learnt in one forward pass, because its loss compares both responses. */
function pairIssues(recipe: Recipe): RecipeIssue[] {
  const { kind, data, actor, algorithm } = recipe;
  if (runKinds[kind].rows !== 'pairs') return [];
  const issues: RecipeIssue[] = [];
  const limit = tokensOfPass(recipe);
  if (limit < 2 * data.max_length)
    issues.push({
      path: 'actor.ppo_max_token_len_per_gpu',
      message: `the two responses of a pair may have ${2 * data.max_length} tokens (twice data.max_length), and one forward pass takes them together`,
      expected: `integer >= ${limitFor(2 * data.max_length, recipe)}`,
      received: `${actor.ppo_max_token_len_per_gpu}`,
    });
  if (data.format !== 'verl')
    issues.push({
      path: 'data.format',
      message: `rows of the form ${data.format} have one answer each, and kind: ${kind} learns from pairs`,
      expected: 'verl',
      received: data.format,
    });
  if (kind === 'dpo' && algorithm.dpo_loss_type !== 'sigmoid' && algorithm.dpo_label_smoothing > 0)
    issues.push({
      path: 'algorithm.dpo_label_smoothing',
      message: `the loss ${algorithm.dpo_loss_type} has no labels to smooth`,
      expected: '0',
      received: `${algorithm.dpo_label_smoothing}`,
    });
  return issues;
}

/** The best policy can only be kept when every validated policy has a checkpoint. */
function bestMetricIssues({ kind, data, trainer }: Recipe): RecipeIssue[] {
  const { best_metric: metric, test_freq: every, save_freq: save } = trainer;
  if (metric === null) return [];
  const issue = (message: string, hint: string) => [{ path: 'trainer.best_metric', message, hint }];
  if (runKinds[kind].validation === 'none') return issue('a supervised run has no validation', 'leave it out');
  if (data.val_files === null) return issue('there is no validation to choose by', 'set data.val_files');
  if (every <= 0) return issue('only the last policy is validated', 'set trainer.test_freq');
  if (save > 0 && every % save === 0) return [];
  return issue(
    `policies are validated every ${every} iterations and saved ${save > 0 ? `every ${save}` : 'only at the end'}, so the best one may not be saved`,
    `set trainer.save_freq to ${every}, or to a divisor of it`,
  );
}
