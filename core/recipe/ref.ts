import { count, key, section } from './key.ts';

/** `ref`: the frozen reference policy; it exists only when a KL term needs it. */
export const refSection = section('The frozen reference policy of the KL terms.', {
  log_prob_max_token_len_per_gpu: key(count.nullable(), null, {
    doc: 'Maximum number of tokens in one forward pass; null: actor.ppo_max_token_len_per_gpu.',
    unit: 'tokens',
    change: 'free',
  }),
});
