import { z } from 'zod';
import { DISTILLATION_LOSSES, POLICY_LOSS_NAMES } from '../rl/names.ts';
import { count, key, section, text } from './key.ts';

const clip = (doc: string) => key(z.number().nonnegative().nullable(), null, { doc, change: 'ask' });

const lossSection = section('How the student learns from the teacher.', {
  loss_mode: key(z.enum(DISTILLATION_LOSSES), 'k3', {
    doc: 'An estimate of the KL divergence from the teacher at the sampled token, or forward_kl_topk: the forward KL on the teacher’s topk most probable tokens.',
    change: 'ask',
  }),
  topk: key(count, 32, {
    doc: 'forward_kl_topk: number of the teacher’s tokens at each position. The student’s output layer runs 1 + topk times.',
    unit: 'tokens',
    change: 'ask',
  }),
  use_task_rewards: key(z.boolean(), true, {
    doc: 'Add the loss to the policy loss; false: learn from the teacher alone.',
    change: 'ask',
  }),
  distillation_loss_coef: key(z.number().nonnegative(), 1, {
    doc: 'Weight of the loss beside the policy loss; without it the weight is 1.',
    change: 'ask',
  }),
  loss_max_clamp: key(z.number().positive().nullable(), 10, {
    doc: 'The loss of a token is clamped to plus and minus this value; null: not clamped.',
    change: 'ask',
  }),
  log_prob_min_clamp: key(z.number().negative().nullable(), -10, {
    doc: 'forward_kl_topk: log-probs are clamped from below; null: not clamped.',
    change: 'ask',
  }),
  use_policy_gradient: key(z.boolean(), false, {
    doc: 'Use the negative loss of each token as its advantage in a policy loss, instead of differentiating it.',
    change: 'ask',
  }),
  policy_loss_mode: key(z.enum(POLICY_LOSS_NAMES), 'vanilla', {
    doc: 'use_policy_gradient: the policy loss.',
    change: 'ask',
  }),
  clip_ratio: key(z.number().nonnegative(), 0.2, {
    doc: 'use_policy_gradient: clip range of the probability ratio.',
    change: 'ask',
  }),
  clip_ratio_low: clip('use_policy_gradient: the ratio is clipped below at 1 minus this value; null: clip_ratio.'),
  clip_ratio_high: clip('use_policy_gradient: the ratio is clipped above at 1 plus this value; null: clip_ratio.'),
  clip_ratio_c: key(z.number().gt(1), 3, {
    doc: 'use_policy_gradient: upper bound of the ratio for negative advantages.',
    change: 'ask',
  }),
});

/** `distillation`: a teacher that judges the policy's own samples token by token. */
export const distillationSection = section(
  'A teacher whose log-probs of the policy’s own samples the policy learns (on-policy distillation).',
  {
    enabled: key(z.boolean(), false, { doc: 'Learn from a teacher.', change: 'fixed' }),
    teacher_model: section('The teacher. It must have the tokenizer of the model that is trained.', {
      model_path: key(text.nullable(), null, {
        doc: 'Folder (begins with ".", "/" or "~") or hub name of the teacher.',
        change: 'fixed',
        pointsTo: 'model',
        verl: 'distillation.teacher_models.teacher_model.model_path',
      }),
    }),
    distillation_loss: lossSection,
  },
);
