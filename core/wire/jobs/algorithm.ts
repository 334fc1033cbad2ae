/** The part of a recipe that determines how a batch is made from samples. */
import { z } from 'zod';
import { batchLayout, lossSettings, optimizerSettings, rolloutCorrectionSettings } from '../../records/schema.ts';
import type { KlControl } from '../../rl/kl-controllers.ts';
import { LR_SCHEDULERS } from '../../rl/lr-schedule.ts';
import type { LrSchedule } from '../../rl/lr-schedule.ts';
import { KL_CONTROLLER_NAMES, KL_TYPES, PF_PPO_METHODS, SPO_RHOS } from '../../rl/names.ts';
import type { OverlongBuffer } from '../../rl/overlong.ts';
import { seed, some } from './fields.ts';

/** The learning-rate schedule over optimiser steps, with its base rate. */
const schedule = z.strictObject({
  lr: z.number(),
  type: z.enum(LR_SCHEDULERS),
  warmupSteps: z.int(),
  totalSteps: z.int(),
  minLrRatio: z.number().optional(),
  numCycles: z.number().optional(),
  initLrRatio: z.number().optional(),
  zeroIndexedStep: z.boolean().optional(),
  stableRatio: z.number().optional(),
}) satisfies z.ZodType<LrSchedule>;
export type ScheduleSettings = z.infer<typeof schedule>;

const klControl = z.strictObject({
  type: z.enum(KL_CONTROLLER_NAMES),
  klCoef: z.number(),
  targetKl: z.number().optional(),
  horizon: z.number().positive().optional(),
}) satisfies z.ZodType<KlControl>;

/** The KL penalty in the reward; its coefficient after the first batch is `controllers.klCoef` of the counters. */
const klInReward = z.strictObject({
  /** Estimator of the KL divergence: core/rl/kl.ts. */
  penalty: z.enum(KL_TYPES),
  control: klControl,
});
export type KlInRewardSettings = z.infer<typeof klInReward>;

/** How a component beside the policy is trained. */
const trainedBeside = z.strictObject({ loss: lossSettings, optimizer: optimizerSettings, schedule });
export type TrainedBeside = z.infer<typeof trainedBeside>;

const overlong = z.strictObject({
  limit: some,
  buffer: some,
  factor: z.number().nonnegative(),
}) satisfies z.ZodType<OverlongBuffer>;

export const algorithmSettings = z.strictObject({
  seed,
  samplesPerDraw: some,
  advEstimator: z.string(),
  normAdvByStd: z.boolean(),
  /** Absent: 1. */
  gamma: z.number().exactOptional(),
  /** Absent: 1. */
  lam: z.number().exactOptional(),
  /** Settings that differ from the defaults of core/rl/advantages/vapo.ts. */
  vapo: z.strictObject({ alpha: z.number(), lamCritic: z.number() }).exactOptional(),
  /** The penalty for long responses. Absent: none. */
  overlong: overlong.exactOptional(),
  /** Scores by name, as columns of the score tables, normalised by themselves and added up. Absent: only the score. */
  components: z
    .strictObject({
      keys: z.array(z.string()).readonly(),
      /** Absent: 1 each. */
      weights: z.array(z.number()).readonly().exactOptional(),
    })
    .exactOptional(),
  /** Absent: the reward is the score. */
  klInReward: klInReward.exactOptional(),
  /** Importance weights and rejection by old log-probs. Absent: none. */
  rolloutCorrection: rolloutCorrectionSettings.exactOptional(),
  /** The log-probs of the rollout are the old ones. Absent: they are computed. */
  bypass: z.boolean().exactOptional(),
  /** How a reward model's score and the scorer's become the reward. Absent: there is no reward model. */
  modelScores: z.strictObject({ weight: z.number(), scorerWeight: z.number() }).exactOptional(),
  maxFailedFraction: z.number(),
  /** Dynamic sampling: only groups whose samples differ in a metric are trained on, and of these the first ones. */
  filterGroups: z.strictObject({ metric: z.string(), prompts: some }).exactOptional(),
  /** Oversampling: of all groups so many are trained on, first those that pass (core/rl/prime-filter.ts). */
  oversampling: z
    .strictObject({
      prompts: some,
      accuracy: z.strictObject({ lowest: z.number(), highest: z.number() }).exactOptional(),
      maxResponseLength: some.exactOptional(),
    })
    .exactOptional(),
  /** What a curriculum remembers of each row. */
  curriculum: z.strictObject({ metric: z.string() }).exactOptional(),
  /** How much the past of a prompt counts for the estimator spo: by how far the policy has moved (kl), or `value`. */
  spo: z.strictObject({ rho: z.enum(SPO_RHOS), value: z.number(), lowest: z.number() }).exactOptional(),
  /** Policy filtration: the batch is trained on after it was drawn again by its scores (core/rl/pf-ppo.ts). */
  pfPpo: z.strictObject({ reweightMethod: z.enum(PF_PPO_METHODS), weightPow: z.number() }).exactOptional(),
  miniBatchPrompts: some,
  epochs: some,
  shuffle: z.boolean(),
  maxTokensPerMicroBatch: some,
  /** A micro-batch has at most so many sequences. Absent: as many as its tokens allow. */
  sequencesPerMicroBatch: some.exactOptional(),
  /** Tokens of one forward pass of the reference. Absent: as the policy's. */
  maxTokensOfReference: some.exactOptional(),
  /** Absent: flat. */
  layout: batchLayout.exactOptional(),
  maxResponseLength: some,
  loss: lossSettings,
  optimizer: optimizerSettings,
  schedule,
  /** The policy is trained from this iteration on, and before it only the critic. Absent: from the first. */
  criticWarmup: some.exactOptional(),
  /** How the value model is trained. */
  critic: trainedBeside.exactOptional(),
  /** How the model of log Z of the loss flowrl is trained. */
  logZ: trainedBeside.exactOptional(),
  /** How the implicit reward model of PRIME is trained. */
  rewardModel: trainedBeside.exactOptional(),
});
export type AlgorithmSettings = z.infer<typeof algorithmSettings>;
