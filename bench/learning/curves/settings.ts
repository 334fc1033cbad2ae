/** What both sides are given: the task of examples/01 with every setting that one of them would choose otherwise. */
import { join } from 'node:path';
import { packageRoot } from '../../../infra/home.ts';

export const example = join(packageRoot(), 'examples/01-arithmetic-grpo');

/** One comparison: the same name on both sides. */
export interface CurveEntry {
  readonly name: string;
  readonly title: string;
  /** TRL's trainer. */
  readonly algorithm: 'grpo' | 'rloo';
  /** Optimiser steps on the responses of an iteration. */
  readonly steps: number;
  /**
   * How TRL cuts several mini-batches: it mixes all responses, or keeps the order, so that a mini-batch has whole
   * groups as petrel's has.
   */
  readonly miniBatches: 'mixed' | 'whole groups';
  /** petrel's own part of the recipe. */
  readonly overrides: readonly string[];
}

const prompts = 64;
const samples = 8;
export const settings = {
  iterations: 20,
  prompts,
  samples,
  new_tokens: 6,
  lr: 1e-4,
  betas: [0.9, 0.99],
  eps: 1e-8,
  weight_decay: 0,
  max_grad_norm: 1,
  clip: 0.2,
} as const;

export const ENTRIES: readonly CurveEntry[] = [
  {
    name: 'grpo',
    title: 'GRPO',
    algorithm: 'grpo',
    steps: 1,
    miniBatches: 'mixed',
    overrides: ['algorithm.adv_estimator=grpo', 'actor.loss_agg_mode=token-mean'],
  },
  {
    name: 'rloo',
    title: 'RLOO',
    algorithm: 'rloo',
    steps: 1,
    miniBatches: 'mixed',
    // With one step the ratio is 1, and d(ratio of a response) = the sum of d(log-prob) over its tokens.
    overrides: ['algorithm.adv_estimator=rloo', 'actor.loss_agg_mode=seq-mean-token-sum'],
  },
  {
    name: 'grpo-four-steps',
    title: 'GRPO, four steps',
    algorithm: 'grpo',
    steps: 4,
    miniBatches: 'whole groups',
    overrides: ['algorithm.adv_estimator=grpo', 'actor.loss_agg_mode=token-mean'],
  },
  {
    name: 'grpo-mixed',
    title: 'GRPO, four steps, mixed by TRL',
    algorithm: 'grpo',
    steps: 4,
    miniBatches: 'mixed',
    overrides: ['algorithm.adv_estimator=grpo', 'actor.loss_agg_mode=token-mean'],
  },
];

/** The recipe's keys, for `entry` and a seed. TRL has no dual clip: its bound is so large that it is never reached. */
export function overridesOf({ steps, overrides }: CurveEntry, seed: number): string[] {
  return [
    `seed=${seed}`,
    `data.train_batch_size=${prompts}`,
    `rollout.n=${samples}`,
    `data.max_response_length=${settings.new_tokens}`,
    `actor.ppo_mini_batch_size=${prompts / steps}`,
    `actor.optim.lr=${settings.lr}`,
    `actor.optim.betas=[${settings.betas.join(',')}]`,
    `actor.optim.eps=${settings.eps}`,
    `actor.optim.weight_decay=${settings.weight_decay}`,
    `actor.grad_clip=${settings.max_grad_norm}`,
    `actor.clip_ratio=${settings.clip}`,
    'actor.clip_ratio_c=1e9',
    'model.compute_dtype=fp32',
    'data.val_files=null',
    'trainer.test_freq=-1',
    'trainer.save_freq=-1',
    `trainer.total_training_steps=${settings.iterations}`,
    ...overrides,
  ];
}
