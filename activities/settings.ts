/** Derives the settings of the stages' jobs from a resolved recipe. Pure. */
import { tokensOfPass } from '../core/recipe/pass.ts';
import { divisionOf } from '../core/division.ts';
import { runKinds, samplesResponses } from '../core/run-kinds.ts';
import type { RunKind } from '../core/run-kinds.ts';
import type { Recipe } from '../core/recipe/index.ts';
import {
  hasOwnSampler,
  promptsPerWave,
  readsValues,
  rewardComponentsOf,
  teacherOf,
  totalIterations,
  tracksPrompts,
  trainedComponents,
  trainedTogether,
} from '../core/recipe/index.ts';
import type { LossSettings, OptimizerSettings, RolloutCorrectionSettings, RunInputs } from '../core/records/schema.ts';
import type { CurriculumSettings } from '../core/rl/curriculum.ts';
import { resolveWarmupSteps } from '../core/rl/lr-schedule.ts';
import { needsOfEstimator } from '../core/rl/names.ts';
import type {
  AlgorithmSettings,
  EngineSettings,
  KlInRewardSettings,
  RolloutPurpose,
  ScheduleSettings,
  TrainedBeside,
  Trains,
} from '../core/wire/jobs/index.ts';

/** Components of a run that are trained together, as a job names them. */
export type Part = Trains;

export function engineSettings(recipe: Recipe): EngineSettings {
  const division = divisionOf(recipe.trainer);
  return {
    engine: recipe.trainer.engine,
    compute: recipe.model.compute_dtype,
    deterministic: recipe.deterministic !== false,
    maxTokensPerMicroBatch: tokensOfPass(recipe),
    ...(recipe.trainer.fsdp_size > 1 && { ranks: recipe.trainer.fsdp_size }),
    ...(division && { division }),
  };
}

/** Key of the counter-based random bits: the run's seed and their purpose. */
export function seedOf(recipe: Recipe, purpose: RolloutPurpose): readonly [number, number] {
  return [recipe.seed >>> 0, purpose === 'validate' ? 2 : 1];
}

export function samplesPerDraw(recipe: Recipe, purpose: RolloutPurpose): number {
  if (purpose === 'baseline') return 1;
  return purpose === 'train' ? recipe.rollout.n : recipe.rollout.val_kwargs.n;
}

/** Does the advantage estimator compare with a greedy response to each prompt? */
export const wantsBaselines = ({ kind, algorithm }: Recipe): boolean =>
  kind === 'rl' && needsOfEstimator(algorithm.adv_estimator).includes('greedyBaselines');

/**
 * Prompts of one rollout job: as many as fill a worker's slots, in a validation at most `data.val_batch_size`;
 * independent of the number of workers.
 */
export function promptsPerJob(recipe: Recipe, purpose: RolloutPurpose): number {
  const filling = Math.max(1, Math.floor(recipe.rollout.max_num_seqs / samplesPerDraw(recipe, purpose)));
  const { val_batch_size: most } = recipe.data;
  return purpose === 'validate' && most !== null ? Math.min(most, filling) : filling;
}

/** Optimiser steps of one iteration when no sample is filtered. */
function stepsPerIteration(recipe: Recipe): number {
  if (!samplesResponses(recipe.kind)) return 1;
  return Math.ceil(recipe.data.train_batch_size / recipe.actor.ppo_mini_batch_size) * recipe.actor.ppo_epochs;
}

export function algorithmSettings(recipe: Recipe, inputs: RunInputs): AlgorithmSettings {
  const { actor } = recipe;
  const { samples, responsesPerRow } = runKinds[recipe.kind];
  const responses = samples ? recipe.rollout.n : responsesPerRow;
  return {
    seed: [recipe.seed >>> 0, actor.data_loader_seed >>> 0],
    samplesPerDraw: responses,
    advEstimator: recipe.algorithm.adv_estimator,
    normAdvByStd: recipe.algorithm.norm_adv_by_std_in_grpo,
    // Absent fields are 1, as in the jobs of older runs.
    ...(recipe.algorithm.gamma !== 1 && { gamma: recipe.algorithm.gamma }),
    ...(recipe.algorithm.lam !== 1 && { lam: recipe.algorithm.lam }),
    ...vapoSettings(recipe),
    ...(samples && managerSettings(recipe)),
    ...(samples && recipe.algorithm.use_kl_in_reward && { klInReward: klInRewardSettings(recipe) }),
    ...(samples && correctionOfBatch(recipe)),
    ...(inputs.rewardModel !== undefined && { modelScores: modelScoreSettings(recipe) }),
    maxFailedFraction: recipe.reward.max_failed_fraction,
    ...filterSettings(recipe),
    ...oversamplingSettings(recipe),
    ...pfPpoSettings(recipe),
    ...curriculumSettings(recipe),
    ...spoSettings(recipe),
    // Given responses are learnt in one optimiser step.
    miniBatchPrompts: samples ? actor.ppo_mini_batch_size : recipe.data.train_batch_size,
    epochs: samples ? actor.ppo_epochs : 1,
    shuffle: actor.shuffle,
    maxTokensPerMicroBatch: tokensOfPass(recipe),
    ...(!actor.use_dynamic_bsz &&
      actor.ppo_micro_batch_size_per_gpu !== null && { sequencesPerMicroBatch: actor.ppo_micro_batch_size_per_gpu }),
    ...(recipe.ref.log_prob_max_token_len_per_gpu !== null && {
      maxTokensOfReference: tokensOfPass(recipe, recipe.ref.log_prob_max_token_len_per_gpu),
    }),
    // An absent field is flat, as in the jobs of older runs.
    ...(responses > 1 && recipe.kind !== 'rm' && actor.use_prefix_grouper && { layout: 'prefixTree' as const }),
    maxResponseLength: recipe.data.max_response_length,
    loss: { ...lossSettings(recipe), ...(inputs.loss && { own: inputs.loss }) },
    optimizer: optimizerSettings(actor.optim, actor.grad_clip),
    schedule: scheduleSettings(recipe, recipe.actor.optim, inputs.trainRows),
    ...(recipe.trainer.critic_warmup > 1 && { criticWarmup: recipe.trainer.critic_warmup }),
    ...(trainedComponents(recipe).includes('critic') && { critic: criticSettings(recipe, inputs.trainRows) }),
    ...(trainedComponents(recipe).includes('logZ') && { logZ: logZSettings(recipe, inputs.trainRows) }),
    ...(samples &&
      trainedComponents(recipe).includes('rewardModel') && {
        rewardModel: primeModelSettings(recipe, inputs.trainRows),
      }),
  };
}

/** Settings of the model of log Z, which are the policy's. */
function logZSettings(recipe: Recipe, trainRows: number): TrainedBeside {
  const { optim, grad_clip: gradClip } = recipe.actor;
  return {
    loss: { ...commonLoss(recipe), kind: 'logZ' },
    optimizer: optimizerSettings(optim, gradClip),
    schedule: scheduleSettings(recipe, optim, trainRows),
  };
}

/** Settings of the implicit reward model of PRIME, which takes the same steps as the policy. */
function primeModelSettings(recipe: Recipe, trainRows: number): TrainedBeside {
  const { optim, grad_clip: gradClip, ...keys } = recipe.reward.prime;
  const prime = {
    update: keys.update,
    lossType: keys.loss_type,
    beta: keys.beta_train,
    lambda: keys.lambda,
    useGroundTruth: keys.prime_use_gt,
    granularity: keys.prime_granularity,
    norm: keys.prime_norm,
    rewardDpoCoef: recipe.algorithm.reward_dpo_coef,
    rewardGtCoef: recipe.algorithm.reward_gt_coef,
  };
  return {
    loss: { ...commonLoss(recipe), kind: 'prime', prime },
    optimizer: optimizerSettings(optim, gradClip),
    schedule: scheduleSettings(recipe, optim, trainRows),
  };
}

/** The metric by which dynamic sampling filters groups; undefined without dynamic sampling. */
export const filterMetric = ({ algorithm: { filter_groups: filter } }: Recipe): string | undefined =>
  filter.enable ? (filter.metric ?? 'score') : undefined;

function filterSettings(recipe: Recipe): Pick<AlgorithmSettings, 'filterGroups'> {
  const metric = filterMetric(recipe);
  return metric === undefined ? {} : { filterGroups: { metric, prompts: recipe.data.train_batch_size } };
}

function oversamplingSettings({ kind, data }: Recipe): Pick<AlgorithmSettings, 'oversampling'> {
  if (kind !== 'rl' || data.oversample_factor === 1) return {};
  return {
    oversampling: {
      prompts: data.train_batch_size,
      ...(data.filter_accuracy && {
        accuracy: { lowest: data.accuracy_lower_bound, highest: data.accuracy_upper_bound },
      }),
      ...(data.filter_truncate && { maxResponseLength: data.max_response_length }),
    },
  };
}

/** Undefined without a curriculum. */
export function curriculumOf({ kind, data: { curriculum } }: Recipe): CurriculumSettings | undefined {
  if (kind !== 'rl' || !curriculum.enable) return undefined;
  const { metric, solved, unsolved, revisit } = curriculum;
  return { metric: metric ?? 'score', solved, unsolved, revisit };
}

function curriculumSettings(recipe: Recipe): Pick<AlgorithmSettings, 'curriculum'> {
  const curriculum = curriculumOf(recipe);
  return curriculum === undefined ? {} : { curriculum: { metric: curriculum.metric } };
}

/** Settings of VAPO; none when they are the defaults. */
function vapoSettings({ algorithm }: Recipe): Pick<AlgorithmSettings, 'vapo'> {
  const { alpha, lam_critic: lamCritic } = algorithm.vapo;
  const isDefault = alpha === 0.05 && lamCritic === 1;
  return algorithm.adv_estimator === 'vapo' && !isDefault ? { vapo: { alpha, lamCritic } } : {};
}

/** Are the prompts of a batch drawn from more, by weights? */
export const choosesPrompts = (recipe: Recipe): boolean =>
  (tracksPrompts(recipe) || hasOwnSampler(recipe)) && promptsPerWave(recipe) > recipe.data.train_batch_size;

function spoSettings(recipe: Recipe): Pick<AlgorithmSettings, 'spo'> {
  const { type: rho, value, clip_lower: lowest } = recipe.algorithm.spo.rho;
  return tracksPrompts(recipe) ? { spo: { rho, value, lowest } } : {};
}

function pfPpoSettings({ algorithm }: Recipe): Pick<AlgorithmSettings, 'pfPpo'> {
  const { reweight_method: reweightMethod, weight_pow: weightPow } = algorithm.pf_ppo;
  return algorithm.use_pf_ppo ? { pfPpo: { reweightMethod, weightPow } } : {};
}

/** Settings of the reward manager; none when the score is the reward. */
function managerSettings(recipe: Recipe): Pick<AlgorithmSettings, 'overlong' | 'components'> {
  const { overlong_buffer: overlong } = recipe.reward;
  const keys = rewardComponentsOf(recipe);
  const { gdpo_reward_weights: weights } = recipe.algorithm;
  return {
    ...(overlong.enable &&
      overlong.len !== null && {
        overlong: { limit: recipe.data.max_response_length, buffer: overlong.len, factor: overlong.penalty_factor },
      }),
    ...(keys.length > 0 && { components: { keys, ...(weights !== null && { weights }) } }),
  };
}

function klInRewardSettings({ algorithm }: Recipe): KlInRewardSettings {
  const { type, kl_coef: klCoef, target_kl: targetKl, horizon } = algorithm.kl_ctrl;
  const control = { type, klCoef, ...(type === 'adaptive' && { targetKl, horizon }) };
  return { penalty: algorithm.kl_penalty, control };
}

/**
 * Settings of the rollout correction; none when no rollout is corrected. The policy loss `bypass_mode` corrects by
 * itself.
 */
function correctionOfBatch(recipe: Recipe): Pick<AlgorithmSettings, 'rolloutCorrection' | 'bypass'> {
  const { rollout_is: weights, rollout_rs: rejection, bypass_mode: bypass } = recipe.algorithm.rollout_correction;
  if (bypass) return { bypass };
  return weights === null && rejection === null ? {} : { rolloutCorrection: correctionSettings(recipe) };
}

/** A threshold of null turns importance weights off, as in verl. */
function correctionSettings({ algorithm }: Recipe): RolloutCorrectionSettings {
  const { rollout_correction: keys } = algorithm;
  const {
    rollout_is: weights,
    rollout_is_threshold: bound,
    rollout_rs: rejection,
    rollout_rs_threshold: bounds,
  } = keys;
  return {
    ...(weights !== null &&
      bound !== null && {
        rollout_is: weights,
        rollout_is_threshold: bound,
        rollout_is_batch_normalize: keys.rollout_is_batch_normalize,
      }),
    ...(rejection !== null && { rollout_rs: rejection }),
    ...(rejection !== null && bounds !== null && { rollout_rs_threshold: bounds }),
    loss_type: keys.loss_type,
  };
}

function modelScoreSettings({ reward }: Recipe): NonNullable<AlgorithmSettings['modelScores']> {
  const { weight, scorer_weight: scorerWeight } = reward.reward_model;
  return { weight, scorerWeight };
}

/** The value model's: it takes the same steps as the policy. */
function criticSettings(recipe: Recipe, trainRows: number): TrainedBeside {
  const { optim, grad_clip: gradClip } = recipe.critic;
  return {
    loss: { ...commonLoss(recipe), kind: 'value', ...constantsOf(valueConstants(recipe)) },
    optimizer: optimizerSettings(optim, gradClip),
    schedule: scheduleSettings(recipe, optim, trainRows),
  };
}

/**
 * The parts of a run's state that are trained together, as jobs name them; what the run is about is in the first. One
 * part unless the critic has jobs of its own.
 */
export function partsOf(recipe: Recipe): readonly [Part, ...Part[]] {
  const [main, ...others] = trainedTogether(recipe).map((components): Part => ({ components, part: true }));
  if (main !== undefined && others.length > 0) return [main, ...others];
  const components = trainedComponents(recipe);
  // Absent when there is only the actor, as in the jobs of older runs.
  return [components.length > 1 || components[0] !== 'actor' ? { components } : {}];
}

/** The components of the jobs that are about the policy. */
export const trains = (recipe: Recipe): Part => partsOf(recipe)[0];

const lossKinds = { rl: 'policy', sft: 'sft', dpo: 'dpo', rm: 'rm' } as const satisfies Record<
  RunKind,
  LossSettings['kind']
>;

function lossSettings(recipe: Recipe): LossSettings {
  const distils = teacherOf(recipe) !== undefined;
  return { ...commonLoss(recipe), ...(distils && { distillation: distillationSettings(recipe) }) };
}

function commonLoss(recipe: Recipe): LossSettings {
  const { actor } = recipe;
  return {
    kind: lossKinds[recipe.kind],
    lossMode: recipe.kind === 'dpo' ? recipe.algorithm.dpo_loss_type : actor.policy_loss.loss_mode,
    clipRatioLow: actor.clip_ratio_low ?? actor.clip_ratio,
    clipRatioHigh: actor.clip_ratio_high ?? actor.clip_ratio,
    clipRatioC: actor.clip_ratio_c,
    lossAggMode: actor.loss_agg_mode,
    entropyCoeff: actor.entropy_coeff,
    ...(actor.calculate_entropy && { calculateEntropy: true as const }),
    useKlLoss: actor.use_kl_loss,
    klLossCoef: actor.kl_loss_coef,
    klLossType: actor.kl_loss_type,
    ...(samplesResponses(recipe.kind) && actor.positive_nll_coef > 0 && { positiveNllCoef: actor.positive_nll_coef }),
    ...(actor.router_aux_loss_coef > 0 && { routerAuxLossCoef: actor.router_aux_loss_coef }),
    temperature: !samplesResponses(recipe.kind) || recipe.rollout.temperature === 0 ? 1 : recipe.rollout.temperature,
    lossScaleFactor: actor.loss_scale_factor ?? recipe.data.max_response_length,
    ...constantsOf(lossConstants(recipe)),
    ...(actor.policy_loss.loss_mode === 'bypass_mode' && { rolloutCorrection: correctionSettings(recipe) }),
  };
}

function distillationSettings({ distillation }: Recipe): NonNullable<LossSettings['distillation']> {
  const { distillation_loss: loss } = distillation;
  return {
    lossMode: loss.loss_mode,
    topk: loss.topk,
    useTaskRewards: loss.use_task_rewards,
    coef: loss.distillation_loss_coef,
    ...(loss.loss_max_clamp !== null && { lossMaxClamp: loss.loss_max_clamp }),
    ...(loss.log_prob_min_clamp !== null && { logProbMinClamp: loss.log_prob_min_clamp }),
    usePolicyGradient: loss.use_policy_gradient,
    policyLossMode: loss.policy_loss_mode,
    clipRatio: loss.clip_ratio,
    clipRatioLow: loss.clip_ratio_low ?? loss.clip_ratio,
    clipRatioHigh: loss.clip_ratio_high ?? loss.clip_ratio,
    clipRatioC: loss.clip_ratio_c,
  };
}

/** No field where a loss has no constants, as in the jobs and records of older runs. */
const constantsOf = (
  constants: Record<string, number | string>,
): { readonly constants?: Record<string, number | string> } =>
  Object.keys(constants).length === 0 ? {} : { constants };

function lossConstants(recipe: Recipe): Record<string, number | string> {
  const { dpo_beta: beta, dpo_label_smoothing: labelSmoothing } = recipe.algorithm;
  if (recipe.kind === 'dpo') return { beta, labelSmoothing };
  return recipe.kind === 'rl' ? policyConstants(recipe) : {};
}

/** The constants that the policy loss reads beside the clip ratios. */
function policyConstants({ actor }: Recipe): Record<string, number | string> {
  const { policy_loss: keys } = actor;
  switch (keys.loss_mode) {
    case 'sapo':
      return { tauPos: actor.tau_pos, tauNeg: actor.tau_neg };
    case 'clip_cov':
      return { clipCovRatio: keys.clip_cov_ratio, clipCovLb: keys.clip_cov_lb, clipCovUb: keys.clip_cov_ub };
    case 'kl_cov':
      return { klCovRatio: keys.kl_cov_ratio, ppoKlCoef: keys.ppo_kl_coef };
    case 'dro':
      return keys.dro_beta === null ? {} : { droBeta: keys.dro_beta };
    case 'sppo':
      // An absent field is 1, as in the jobs of older runs.
      return keys.sppo_eta === 1 ? {} : { sppoEta: keys.sppo_eta };
    case 'gvpo':
      return { gvpoBeta: keys.gvpo_beta };
    case 'flowrl':
      return { flowrlBetaCoef: keys.flowrl_beta_coef };
    case 'online_dpo':
      return {
        dpoBeta: keys.dpo_beta,
        dpoLossType: keys.dpo_loss_type,
        dpoLabelSmoothing: keys.dpo_label_smoothing,
      };
    default:
      return {};
  }
}

/** The clip range refers to the values of the batch, which it has where the estimator reads them. */
const valueConstants = (recipe: Recipe): Record<string, number> =>
  readsValues(recipe) ? { cliprangeValue: recipe.critic.cliprange_value } : {};

type Optim = Recipe['actor']['optim'];

function optimizerSettings(optim: Optim, gradClip: number): OptimizerSettings {
  const [beta1, beta2] = optim.betas;
  return { beta1, beta2, eps: optim.eps, weightDecay: optim.weight_decay, maxGradNorm: gradClip };
}

function scheduleSettings(recipe: Recipe, optim: Optim, rows: number): ScheduleSettings {
  const totalSteps = optim.total_training_steps ?? totalIterations(recipe, rows) * stepsPerIteration(recipe);
  return {
    lr: optim.lr,
    type: optim.lr_scheduler_type,
    warmupSteps: resolveWarmupSteps(optim.lr_warmup_steps, optim.lr_warmup_steps_ratio, totalSteps),
    totalSteps,
    minLrRatio: optim.min_lr_ratio,
    numCycles: optim.num_cycles,
    ...(optim.init_lr_ratio === null ? {} : { initLrRatio: optim.init_lr_ratio }),
    zeroIndexedStep: optim.zero_indexed_step,
    stableRatio: optim.stable_ratio,
  };
}
