import { z } from 'zod';
import { countOrZero, fraction, key, section, text } from './key.ts';
import { KL_TYPES } from '../rl/names.ts';

/** verl's estimators; `not-built.ts` lists those that are not built. */
export const ADV_ESTIMATORS = [
  'grpo',
  'gae',
  'reinforce_plus_plus',
  'reinforce_plus_plus_baseline',
  'remax',
  'rloo',
  'opo',
  'grpo_passk',
  'gpg',
  'gdpo',
  'optimal_token_baseline',
  'tir_optimal_token_baseline',
] as const;

const klCtrlSection = section('The coefficient of the KL penalty in the reward.', {
  type: key(z.enum(['fixed', 'adaptive']), 'fixed', { doc: 'adaptive: steered towards target_kl.', change: 'ask' }),
  kl_coef: key(z.number().nonnegative(), 0.001, { doc: 'The coefficient, or its start.', change: 'ask' }),
  horizon: key(z.number().positive(), 10000, { doc: 'adaptive: how slowly it moves.', unit: 'samples', change: 'ask' }),
  target_kl: key(z.number().positive(), 0.1, { doc: 'adaptive: the KL to hold.', change: 'ask' }),
});

const filterGroupsSection = section(
  'Leave out groups whose rewards are all equal, and sample others (dynamic sampling).',
  {
    enable: key(z.boolean(), false, { doc: 'Filter and refill.', change: 'ask' }),
    metric: key(text.nullable(), null, { doc: 'Column that must differ: score, acc, seq_reward …', change: 'ask' }),
    max_num_gen_batches: key(countOrZero, 0, { doc: 'Most waves of refill; 0: no limit.', change: 'ask' }),
  },
);

const threshold = z.union([z.number(), text]).nullable();

const rolloutCorrectionSection = section('Correction of the difference between the sampling and the training policy.', {
  rollout_is: key(z.enum(['token', 'sequence']).nullable(), null, {
    doc: 'Importance weights per token or sequence; null: off.',
    change: 'ask',
  }),
  rollout_is_threshold: key(threshold, 2, {
    doc: 'Where the weights are cut; "low_high" sets both ends.',
    change: 'ask',
  }),
  rollout_is_batch_normalize: key(z.boolean(), false, { doc: 'Weights are divided by their mean.', change: 'ask' }),
  rollout_rs: key(text.nullable(), null, { doc: 'Rejection by this statistic; null: off.', change: 'ask' }),
  rollout_rs_threshold: key(threshold, null, { doc: 'Bounds of the statistic.', change: 'ask' }),
  bypass_mode: key(z.boolean(), false, { doc: 'The rollout’s log-probs serve as the old ones.', change: 'ask' }),
});

/** `algorithm`: from rewards to advantages. */
export const algorithmSection = section('From rewards to advantages.', {
  adv_estimator: key(z.enum(ADV_ESTIMATORS), 'grpo', { doc: 'The advantage estimator.', change: 'ask' }),
  gamma: key(fraction, 1, { doc: 'Discount per token.', change: 'ask' }),
  lam: key(fraction, 1, { doc: 'Lambda of gae.', change: 'ask' }),
  norm_adv_by_std_in_grpo: key(z.boolean(), true, {
    doc: 'Divide by the spread of the group; false: only subtract its mean (Dr. GRPO).',
    change: 'ask',
  }),
  use_kl_in_reward: key(z.boolean(), false, {
    doc: 'Subtract the KL to the reference from the reward.',
    change: 'ask',
  }),
  kl_penalty: key(z.enum(KL_TYPES), 'kl', { doc: 'Estimator of that KL.', change: 'ask' }),
  kl_ctrl: klCtrlSection,
  filter_groups: filterGroupsSection,
  rollout_correction: rolloutCorrectionSection,
});
