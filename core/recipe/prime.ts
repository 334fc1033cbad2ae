import { z } from 'zod';
import { PRIME_LOSSES } from '../rl/names.ts';
import { key, section } from './key.ts';
import { optimSection } from './optim.ts';

/** `reward.prime`: the implicit reward model of the estimator `prime`. It begins as the model that is trained. */
export const primeSection = section(
  'The implicit reward model of adv_estimator prime: a copy of the model that learns the scores of whole responses, and rewards every token.',
  {
    update: key(z.enum(['before', 'after']), 'before', {
      doc: 'before: it learns from a batch, then rewards its tokens; after: the other way round, with one forward pass less.',
      change: 'ask',
      verl: 'reward_model.model.update',
    }),
    loss_type: key(z.enum(PRIME_LOSSES), 'ce', {
      doc: 'Its loss: cross-entropy of the scores, or of comparisons within a group. none is called dpo in verl.',
      change: 'ask',
      verl: 'reward_model.model.loss_type',
    }),
    beta_train: key(z.number().positive(), 0.05, {
      doc: 'Scale of its log-ratio to the reference, as a reward.',
      change: 'ask',
      verl: 'reward_model.model.beta_train',
    }),
    lambda: key(z.number().min(0).max(1), 0, {
      doc: 'Share of the following token’s reward that is added to a token’s.',
      change: 'ask',
      verl: 'reward_model.lambda',
    }),
    prime_use_gt: key(z.boolean(), false, {
      doc: 'Replace the last token’s reward so that those of a response add up to its score; with lambda > 0 only.',
      change: 'ask',
      verl: 'reward_model.prime_use_gt',
    }),
    prime_granularity: key(z.enum(['token', 'whole']), 'token', {
      doc: 'token: each token has a reward; whole: only the last one.',
      change: 'ask',
      verl: 'reward_model.prime_granularity',
    }),
    prime_norm: key(z.enum(['batch_norm', 'none']), 'batch_norm', {
      doc: 'batch_norm: rewards are divided by the largest sum to the end of a response, in the batch.',
      change: 'ask',
      verl: 'reward_model.prime_norm',
    }),
    grad_clip: key(z.number().nonnegative(), 10, {
      doc: 'Maximum norm of the gradient; 0: no clipping.',
      change: 'ask',
      verl: 'reward_model.model.optim.grad_clip',
    }),
    optim: optimSection({ rl: 1e-6, sft: 1e-6 }),
  },
);
