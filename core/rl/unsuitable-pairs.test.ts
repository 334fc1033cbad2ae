import { expect, test } from 'vitest';
import { ADVANTAGE_NAMES, POLICY_LOSS_NAMES } from './names.ts';
import { whyUnsuitable } from './unsuitable-pairs.ts';

test('every loss goes with grpo, and every estimator with the loss of PPO', () => {
  expect(POLICY_LOSS_NAMES.map((loss) => whyUnsuitable('grpo', loss)).filter(Boolean)).toEqual([]);
  expect(ADVANTAGE_NAMES.map((name) => whyUnsuitable(name, 'vanilla')).filter(Boolean)).toEqual([]);
});

test('gvpo needs advantages relative to the group, online_dpo needs none, and bypass_mode has no old probabilities', () => {
  expect(whyUnsuitable('gae', 'gvpo')).toMatch(/relative to the group/);
  expect(whyUnsuitable('grpo_passk', 'gvpo')).toMatch(/add up to 0/);
  expect(whyUnsuitable('optimal_token_baseline', 'bypass_mode')).toMatch(/probabilities of all tokens/);
  expect(whyUnsuitable('gae', 'online_dpo')).toMatch(/for nothing/);
  expect(whyUnsuitable('reinforce_plus_plus', 'online_dpo')).toBeUndefined();
});
