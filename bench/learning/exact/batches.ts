/** The runs whose batches are compared: ten that differ in shape, aggregation and terms of the loss. */

export interface RecordedBatch {
  readonly name: string;
  /** Overrides over the recipe of examples/01. */
  readonly overrides: readonly string[];
}

const long = ['data.max_response_length=40', 'rollout.temperature=1.5'];
const critic = ['algorithm.adv_estimator=gae', 'algorithm.lam=0.95', 'critic.optim.lr=3e-4'];
/** Several optimiser steps, so that the ratios differ from 1. */
const fourSteps = 'actor.ppo_mini_batch_size=16';

export const BATCHES: readonly RecordedBatch[] = [
  { name: 'grpo, one step', overrides: ['actor.loss_agg_mode=token-mean'] },
  { name: 'grpo, four steps', overrides: [fourSteps, 'actor.loss_agg_mode=seq-mean-token-mean'] },
  {
    name: 'grpo, 16 x 16, KL loss',
    overrides: [
      ...['data.train_batch_size=16', 'rollout.n=16', 'actor.ppo_mini_batch_size=8', 'actor.optim.lr=3e-4'],
      ...['actor.use_kl_loss=true', 'actor.kl_loss_coef=0.1', 'actor.loss_agg_mode=token-mean'],
    ],
  },
  {
    name: 'Dr. GRPO, small passes',
    overrides: [
      ...['algorithm.norm_adv_by_std_in_grpo=false', 'actor.loss_agg_mode=seq-mean-token-sum-norm'],
      ...[fourSteps, 'actor.ppo_max_token_len_per_gpu=256'],
    ],
  },
  {
    name: 'clip-higher, long, entropy',
    overrides: [...long, fourSteps, 'actor.clip_ratio_high=0.28', 'actor.entropy_coeff=0.01', 'actor.optim.lr=3e-4'],
  },
  { name: 'rloo, four steps', overrides: ['algorithm.adv_estimator=rloo', fourSteps, 'actor.optim.lr=5e-4'] },
  {
    name: 'rloo, pairs, long',
    overrides: ['algorithm.adv_estimator=rloo', 'rollout.n=2', fourSteps, ...long, 'actor.optim.lr=5e-4'],
  },
  {
    name: 'rloo, 16 x 16, sums',
    overrides: [
      ...['algorithm.adv_estimator=rloo', 'data.train_batch_size=16', 'rollout.n=16', 'actor.ppo_mini_batch_size=8'],
      ...['actor.loss_agg_mode=seq-mean-token-sum', 'actor.optim.lr=1e-3'],
    ],
  },
  { name: 'ppo, four steps', overrides: [...critic, fourSteps, 'actor.optim.lr=3e-4'] },
  {
    name: 'ppo, long, KL, entropy',
    overrides: [
      ...[...critic, ...long, fourSteps, 'actor.optim.lr=3e-4', 'actor.entropy_coeff=0.01'],
      ...['actor.use_kl_loss=true', 'actor.kl_loss_coef=0.05', 'critic.cliprange_value=0.2'],
    ],
  },
];

/** All runs are short: the second batch is compared, under the policy after its update. */
export const common: readonly string[] = [
  ...['model.compute_dtype=fp32', 'data.val_files=null', 'trainer.test_freq=-1', 'trainer.total_training_steps=2'],
];
