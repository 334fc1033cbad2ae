import { z } from 'zod';
import { count, key, section } from './key.ts';
import { optimSection } from './optim.ts';

/** `critic`: the value model. */
export const criticSection = section('The value model, for estimators that need one.', {
  enable: key(z.boolean().nullable(), null, {
    doc: 'Train a value model beside the policy, on the returns; null: yes if algorithm.adv_estimator reads its values (gae, vapo).',
    change: 'fixed',
  }),
  own_trainer: key(z.boolean(), false, {
    doc: 'Train the value model by jobs of its own, which another trainer can take.',
    change: 'fixed',
  }),
  ppo_max_token_len_per_gpu: key(count, 32768, {
    doc: 'Maximum number of tokens in one forward pass.',
    unit: 'tokens',
    change: 'ask',
  }),
  cliprange_value: key(z.number().positive(), 0.5, { doc: 'Clip range of the value loss.', change: 'ask' }),
  grad_clip: key(z.number().nonnegative(), 1, { doc: 'Maximum norm of the gradient; 0: no clipping.', change: 'ask' }),
  optim: optimSection({ rl: 1e-5, sft: 1e-5 }),
});
