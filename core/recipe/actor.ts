import { KL_TYPES, LOSS_AGG_MODES, POLICY_LOSS_NAMES, PREFERENCE_LOSS_TYPES } from '../rl/names.ts';
import { z } from 'zod';
import { count, fraction, key, nameOrModule, section } from './key.ts';
import { optimSection } from './optim.ts';

/** `actor`: the policy and its update. */
export const actorSection = section('The policy: its loss, mini-batches and optimiser.', {
  ppo_mini_batch_size: key(count, 256, {
    doc: 'Prompts per optimiser step; each has rollout.n responses. Must divide data.train_batch_size.',
    unit: 'prompts',
    change: 'ask',
  }),
  ppo_micro_batch_size_per_gpu: key(count.nullable(), null, {
    doc: 'With use_dynamic_bsz: false, the most sequences in one forward pass; the token limit applies, too.',
    unit: 'sequences',
    change: 'ask',
  }),
  use_dynamic_bsz: key(z.boolean(), true, {
    doc: 'true: as few forward passes as the token limit allows, with about equal numbers of tokens; false: ppo_micro_batch_size_per_gpu sequences each. Sequences are packed in both cases, and the result is the same up to rounding.',
    change: 'ask',
  }),
  ppo_max_token_len_per_gpu: key(count, 16384, {
    doc: 'Maximum number of tokens of one process in a forward pass, prompts included.',
    unit: 'tokens',
    change: 'ask',
  }),
  use_prefix_grouper: key(z.boolean(), true, {
    doc: 'Compute the prompt that the samples of a group share once, in training and in old and reference log-probs. The result is the same up to rounding.',
    change: 'ask',
  }),
  ppo_epochs: key(count, 1, { doc: 'Number of passes over each batch.', change: 'ask' }),
  shuffle: key(z.boolean(), false, {
    doc: 'Shuffle the mini-batches, in an order that follows from data_loader_seed.',
    change: 'ask',
  }),
  data_loader_seed: key(z.int(), 42, { doc: 'Seed of the order of the mini-batches.', change: 'ask' }),
  clip_ratio: key(z.number().nonnegative(), 0.2, { doc: 'Clip range of the probability ratio.', change: 'ask' }),
  clip_ratio_low: key(z.number().nonnegative().nullable(), null, {
    doc: 'The ratio is clipped below at 1 minus this value; null: clip_ratio.',
    change: 'ask',
  }),
  clip_ratio_high: key(z.number().nonnegative().nullable(), null, {
    doc: 'The ratio is clipped above at 1 plus this value; null: clip_ratio.',
    change: 'ask',
  }),
  clip_ratio_c: key(z.number().gt(1), 3, {
    doc: 'Upper bound of the ratio for negative advantages (dual clip).',
    change: 'ask',
  }),
  tau_pos: key(z.number().positive(), 1, {
    doc: 'sapo: sharpness of the gate for positive advantages.',
    change: 'ask',
  }),
  tau_neg: key(z.number().positive(), 1.05, {
    doc: 'sapo: sharpness of the gate for negative advantages.',
    change: 'ask',
  }),
  loss_agg_mode: key(z.enum(LOSS_AGG_MODES), 'token-mean', {
    doc: 'How the losses of tokens are combined into one number.',
    change: 'ask',
  }),
  loss_scale_factor: key(z.number().positive().nullable(), null, {
    doc: 'The divisor that seq-mean-token-sum-norm uses; null: the padded width of the batch.',
    change: 'ask',
  }),
  entropy_coeff: key(z.number(), 0, { doc: 'Weight of the entropy bonus.', change: 'ask' }),
  calculate_entropy: key(z.boolean(), false, {
    doc: 'Report the entropy in every optimiser step (actor/entropy_loss) even when it is not in the loss.',
    change: 'free',
  }),
  use_kl_loss: key(z.boolean(), false, {
    doc: 'Add the KL divergence from the reference policy to the loss.',
    change: 'ask',
  }),
  kl_loss_coef: key(z.number().nonnegative(), 0.001, { doc: 'Weight of the KL term in the loss.', change: 'ask' }),
  kl_loss_type: key(z.enum(KL_TYPES), 'low_var_kl', {
    doc: 'Estimator of the KL divergence: k1 = kl, k2 = mse, k3 = low_var_kl; a "+" takes the gradient from k2.',
    change: 'ask',
  }),
  positive_nll_coef: key(z.number().nonnegative(), 0, {
    doc: 'Weight of the loss on positive examples: the policy imitates responses whose score is above 0 (VAPO: 0.1).',
    change: 'ask',
  }),
  router_aux_loss_coef: key(z.number().nonnegative(), 0, {
    doc: 'Weight of the auxiliary loss that spreads the tokens over the experts of a mixture, as transformers has it: of a model in training by torch whose config has router_aux_loss_coef.',
    change: 'ask',
  }),
  grad_clip: key(z.number().nonnegative(), 1, { doc: 'Maximum norm of the gradient; 0: no clipping.', change: 'ask' }),
  policy_loss: section('The choice of policy loss, and its constants.', {
    loss_mode: key(nameOrModule(POLICY_LOSS_NAMES), 'vanilla', {
      doc: 'The policy loss; vanilla: clipped PPO. A path is a loss of your own: docs/learn/change-a-loss.md.',
      change: 'ask',
      pointsTo: 'module',
    }),
    clip_cov_ratio: key(fraction, 0.0002, { doc: 'clip_cov: share of tokens whose loss is dropped.', change: 'ask' }),
    clip_cov_lb: key(z.number(), 1, { doc: 'clip_cov: lower bound of the covariance.', change: 'ask' }),
    clip_cov_ub: key(z.number(), 5, { doc: 'clip_cov: upper bound of the covariance.', change: 'ask' }),
    kl_cov_ratio: key(fraction, 0.0002, { doc: 'kl_cov: share of tokens that get the penalty.', change: 'ask' }),
    ppo_kl_coef: key(z.number(), 0.1, { doc: 'kl_cov: weight of the penalty.', change: 'ask' }),
    dro_beta: key(z.number().positive().nullable(), null, {
      doc: 'dro: weight of the squared log-ratio.',
      change: 'ask',
    }),
    sppo_eta: key(z.number().positive(), 1, {
      doc: 'sppo: scale of the advantage.',
      change: 'ask',
      verl: 'actor.sppo_eta',
    }),
    gvpo_beta: key(z.number().positive(), 0.1, {
      doc: 'gvpo: scale of a response’s log-ratio, as an implicit reward.',
      change: 'ask',
    }),
    flowrl_beta_coef: key(z.number().positive(), 15, {
      doc: 'flowrl: scale of the reward, the mean advantage of a response.',
      change: 'ask',
    }),
    dpo_beta: key(z.number().positive(), 0.1, {
      doc: 'online_dpo: scale of the difference of log-ratios.',
      change: 'ask',
      verl: 'algorithm.dpo_beta',
    }),
    dpo_loss_type: key(z.enum(PREFERENCE_LOSS_TYPES), 'sigmoid', {
      doc: 'online_dpo: the loss of a pair.',
      change: 'ask',
      verl: 'algorithm.dpo_loss_type',
    }),
    dpo_label_smoothing: key(fraction, 0, {
      doc: 'online_dpo: share of the preferences that are taken to be wrong.',
      change: 'ask',
      verl: 'algorithm.dpo_label_smoothing',
    }),
  }),
  optim: optimSection({ rl: 1e-6, sft: 1e-5 }),
});
