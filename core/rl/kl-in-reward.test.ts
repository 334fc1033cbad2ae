import { expect, test } from 'vitest';
import { klInReward } from './kl-in-reward.ts';
import { raggedRows } from './ragged.ts';

const rows = raggedRows([2, 1, 1], [1, 0, 1, 0]);
const input = { rows, scores_T: [0, 5, 1, 2], oldLogProb_T: [-1, NaN, -2, NaN], refLogProb_T: [-2, NaN, -1.5, NaN] };

test('the reward of a valid token is lowered by the KL; masked tokens keep theirs', () => {
  expect([...klInReward(input, 'kl', 0.1).rewards_T]).toEqual([-0.1, 5, 1.05, 2]);
});

test('the KL is the mean over samples; one without a valid token counts as 0', () => {
  const { kl, metrics } = klInReward(input, 'kl', 0.1);
  expect(kl).toBeCloseTo((1 - 0.5 + 0) / 3, 7);
  expect(metrics).toEqual({ 'actor/reward_kl_penalty': kl, 'actor/reward_kl_penalty_coeff': 0.1 });
});

test('an empty batch has the KL 0', () => {
  const empty = { rows: raggedRows([]), scores_T: [], oldLogProb_T: [], refLogProb_T: [] };
  expect(klInReward(empty, 'k3', 0.1)).toMatchObject({ kl: 0, rewards_T: new Float64Array() });
});

test('an unknown estimator and arrays of other lengths are refused', () => {
  expect(() => klInReward(input, 'full', 0.1)).toThrow(/unknown KL estimator "full"/);
  expect(() => klInReward({ ...input, scores_T: [1] }, 'kl', 0.1)).toThrow(/scores has 1 values for 4 tokens/);
  expect(() => klInReward({ ...input, refLogProb_T: [1] }, 'kl', 0.1)).toThrow(/reference log-probs has 1/);
});
