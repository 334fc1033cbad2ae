import { z } from 'zod';
import { countOrZero, fraction, key, nameOrModule, section, text } from './key.ts';
import { BYPASS_LOSS_TYPES } from '../rl/rollout-correction/options.ts';
import {
  ADVANTAGE_NAMES,
  KL_CONTROLLER_NAMES,
  KL_TYPES,
  PF_PPO_METHODS,
  PREFERENCE_LOSS_TYPES,
  SPO_RHOS,
} from '../rl/names.ts';

const klCtrlSection = section('The coefficient of the KL penalty in the reward.', {
  type: key(z.enum(KL_CONTROLLER_NAMES), 'fixed', {
    doc: 'fixed: constant; adaptive: adjusted so that the KL approaches target_kl.',
    change: 'ask',
  }),
  kl_coef: key(z.number().nonnegative(), 0.001, {
    doc: 'The coefficient; with adaptive its initial value.',
    change: 'ask',
  }),
  horizon: key(z.number().positive(), 10000, {
    doc: 'adaptive: a larger value changes the coefficient more slowly.',
    unit: 'samples',
    change: 'ask',
  }),
  target_kl: key(z.number().positive(), 0.1, { doc: 'adaptive: the desired KL.', change: 'ask' }),
});

const filterGroupsSection = section(
  'Discard groups whose rewards are all equal, and sample other prompts instead (dynamic sampling).',
  {
    enable: key(z.boolean(), false, { doc: 'Discard groups and sample others.', change: 'ask' }),
    metric: key(text.nullable(), null, {
      doc: 'The values of this column must differ within a group: score, acc or another number that the scorer returns; null: score.',
      change: 'ask',
    }),
    max_num_gen_batches: key(countOrZero, 0, {
      doc: 'Times that prompts are sampled for one batch at most, the first included; then the run pauses. 0: until each row was sampled, and at least 10 times.',
      change: 'ask',
    }),
  },
);

const pfPpoSection = section('How use_pf_ppo weighs samples.', {
  reweight_method: key(z.enum(PF_PPO_METHODS), 'pow', {
    doc: 'pow: by the size of the score; max_min: only the highest and the lowest score; max_random: mostly the highest.',
    change: 'ask',
  }),
  weight_pow: key(z.number().positive(), 2, { doc: 'pow: the exponent.', change: 'ask' }),
});

const vapoSection = section('The lambdas of adv_estimator vapo.', {
  alpha: key(z.number().positive(), 0.05, {
    doc: 'The lambda of the policy is 1 - 1 / (alpha * length of the response), and at least 0.',
    change: 'ask',
  }),
  lam_critic: key(fraction, 1, { doc: 'The lambda of the targets of the critic.', change: 'ask' }),
});

const spoSection = section('What the estimator spo remembers of each prompt.', {
  rho: section('How much the past of a prompt counts beside its next response.', {
    type: key(z.enum(SPO_RHOS), 'kl', {
      doc: 'kl: less, the more the policy has moved on the last response to the prompt; constant: value.',
      change: 'ask',
      verl: 'trainer.spo.rho.type',
    }),
    value: key(fraction, 0.875, { doc: 'constant: the factor.', change: 'ask', verl: 'trainer.spo.rho.value' }),
    clip_lower: key(z.number().min(0).lt(1), 0.875, {
      doc: 'kl: the smallest factor; the largest is 0.96.',
      change: 'ask',
      verl: 'trainer.spo.rho.clip_lower',
    }),
  }),
});

const threshold = z.union([z.number(), text]).nullable();

const rolloutCorrectionSection = section('Correction of the difference between the sampling and the training policy.', {
  rollout_is: key(z.enum(['token', 'sequence']).nullable(), null, {
    doc: 'Level of the importance weights; null: off.',
    change: 'ask',
  }),
  rollout_is_threshold: key(threshold, 2, {
    doc: 'Upper bound of the weights; "low_high" sets both bounds.',
    change: 'ask',
  }),
  rollout_is_batch_normalize: key(z.boolean(), false, { doc: 'Divide the weights by their mean.', change: 'ask' }),
  rollout_rs: key(text.nullable(), null, {
    doc: 'Reject tokens or sequences by this statistic; null: off.',
    change: 'ask',
  }),
  rollout_rs_threshold: key(threshold, null, { doc: 'Bounds within which the statistic must lie.', change: 'ask' }),
  bypass_mode: key(z.boolean(), false, {
    doc: 'Use the log-probs of the rollout as old log-probs. Weights and rejection then need the policy loss bypass_mode.',
    change: 'ask',
  }),
  loss_type: key(z.enum(BYPASS_LOSS_TYPES), 'ppo_clip', {
    doc: 'The policy loss bypass_mode: ppo_clip, or reinforce with the importance weights.',
    change: 'ask',
  }),
});

/** Metrics are named after it. */
const componentName = z.string().regex(/^[^/]+$/, 'expected the name of a column, without a slash');

/** `algorithm`: how rewards become advantages. */
export const algorithmSection = section('How rewards become advantages.', {
  adv_estimator: key(nameOrModule(ADVANTAGE_NAMES), 'grpo', {
    doc: 'The advantage estimator. A path is an estimator of your own: docs/learn/change-a-loss.md.',
    change: 'ask',
    pointsTo: 'module',
  }),
  gamma: key(fraction, 1, {
    doc: 'Discount factor per token (gamma) of gae, vapo and reinforce_plus_plus.',
    change: 'ask',
  }),
  lam: key(fraction, 1, { doc: 'The lambda of gae.', change: 'ask' }),
  vapo: vapoSection,
  norm_adv_by_std_in_grpo: key(z.boolean(), true, {
    doc: 'Divide by the standard deviation of the group; false: only subtract its mean (Dr. GRPO).',
    change: 'ask',
  }),
  gdpo_reward_keys: key(z.array(componentName).min(1).nullable(), null, {
    doc: 'gdpo: names of the scores that are normalised by themselves and added up. The scorer returns each of them.',
    change: 'ask',
  }),
  gdpo_reward_weights: key(z.array(z.number()).min(1).nullable(), null, {
    doc: 'gdpo: a weight for each of gdpo_reward_keys; null: 1 each.',
    change: 'ask',
  }),
  reward_dpo_coef: key(z.number().nonnegative(), 5, {
    doc: 'prime: weight of the rewards of tokens, from the implicit reward model.',
    change: 'ask',
  }),
  reward_gt_coef: key(z.number().nonnegative(), 5, { doc: 'prime: weight of the scores.', change: 'ask' }),
  use_kl_in_reward: key(z.boolean(), false, {
    doc: 'Subtract the KL divergence from the reference policy from the reward.',
    change: 'ask',
  }),
  kl_penalty: key(z.enum(KL_TYPES), 'kl', { doc: 'Estimator of the KL divergence in the reward.', change: 'ask' }),
  kl_ctrl: klCtrlSection,
  dpo_beta: key(z.number().positive(), 0.1, {
    doc: 'Strength of the pull to the reference policy (kind: dpo); TRL: beta.',
    change: 'ask',
  }),
  dpo_loss_type: key(z.enum(PREFERENCE_LOSS_TYPES), 'sigmoid', {
    doc: 'The loss of a pair (kind: dpo): sigmoid (DPO) or ipo, which adds up log-probs as verl does; TRL averages them.',
    change: 'ask',
  }),
  dpo_label_smoothing: key(z.number().min(0).lt(0.5), 0, {
    doc: 'Share of pairs whose labels are taken to be wrong (kind: dpo, sigmoid); TRL: label_smoothing.',
    change: 'ask',
  }),
  filter_groups: filterGroupsSection,
  use_pf_ppo: key(z.boolean(), false, {
    doc: 'Draw the samples of a batch again with replacement, by their scores, before they are trained on (PF-PPO; with gae and vapo).',
    change: 'ask',
  }),
  pf_ppo: pfPpoSection,
  spo: spoSection,
  rollout_correction: rolloutCorrectionSection,
});
