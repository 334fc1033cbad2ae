import { count, key, section } from './key.ts';

/** `ref`: the frozen reference policy; it exists when a KL term asks for it. */
export const refSection = section('The frozen reference policy of the KL terms.', {
  log_prob_max_token_len_per_gpu: key(count.nullable(), null, {
    doc: 'Most tokens of one forward pass; null: actor.ppo_max_token_len_per_gpu.',
    unit: 'tokens',
    change: 'free',
  }),
});
