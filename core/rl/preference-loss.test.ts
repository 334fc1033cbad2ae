import { describe, expect, test } from 'vitest';
import { dpoPairs, preferenceLoss } from './preference-loss.ts';
import { rewardModelLoss } from './reward-model-loss.ts';

describe('the preference loss', () => {
  const config = { beta: 0.1, lossType: 'sigmoid' } as const;

  test('of a policy equal to its reference is log 2', () => {
    const logProbs = { chosen_G: [-5, -7], rejected_G: [-6, -3] };
    const { loss, accuracy, margin } = preferenceLoss({ ...logProbs, reference: logProbs }, config);
    expect(loss).toBeCloseTo(Math.log(2), 12);
    expect([accuracy, margin]).toEqual([0, 0]);
  });

  test('stays finite for log-probs that differ by thousands', () => {
    const { loss, dChosen_G } = preferenceLoss({ chosen_G: [-4000], rejected_G: [0] }, { ...config, beta: 5 });
    expect(loss).toBe(20000);
    expect(dChosen_G[0]).toBe(-5);
  });

  test('with half of the labels wrong is least where both responses are equally likely', () => {
    const at = (chosen: number) =>
      preferenceLoss({ chosen_G: [chosen], rejected_G: [-2] }, { ...config, labelSmoothing: 0.5 });
    expect(at(-2).dChosen_G[0]).toBeCloseTo(0, 12);
    expect(at(-1).loss).toBeGreaterThan(at(-2).loss);
    expect(at(-3).loss).toBeGreaterThan(at(-2).loss);
  });

  test('of several micro-batches with a common weight adds up', () => {
    const [chosen_G, rejected_G] = [
      [-1, -2, -3],
      [-3, -1, -2],
    ];
    const whole = preferenceLoss({ chosen_G, rejected_G }, config);
    const parts = [0, 1, 2].map((g) =>
      preferenceLoss({ chosen_G: [chosen_G[g]!], rejected_G: [rejected_G[g]!] }, { ...config, pairWeight: 1 / 3 }),
    );
    expect(parts.reduce((sum, { loss }) => sum + loss, 0)).toBeCloseTo(whole.loss, 12);
  });

  test('refuses an unknown type, a beta of 0, and unpaired log-probs', () => {
    const pairs = { chosen_G: [-1], rejected_G: [-2] };
    expect(() => preferenceLoss(pairs, { beta: 0.1, lossType: 'hinge' })).toThrow(
      expect.objectContaining({ hint: 'one of sigmoid, ipo' }),
    );
    expect(() => preferenceLoss(pairs, { ...config, beta: 0 })).toThrow(/beta .* greater than 0/);
    expect(() => preferenceLoss({ chosen_G: [-1, -1], rejected_G: [-2] }, config)).toThrow(/equally many/);
  });
});

describe('pairs of responses', () => {
  test('are found by prompt; the higher score is chosen, the first of equal ones', () => {
    expect(dpoPairs([1, 5, 2, 5], ['a', 'b', 'a', 'b'])).toEqual([
      { chosen: 2, rejected: 0 },
      { chosen: 1, rejected: 3 },
    ]);
  });

  test('need exactly two responses to a prompt', () => {
    expect(() => dpoPairs([1, 2, 3], ['a', 'a', 'a'])).toThrow(/two responses to a prompt, got 3/);
    expect(() => dpoPairs([1], ['a'])).toThrow(/got 1/);
  });
});

test('a reward model learns only differences of rewards', () => {
  const low = rewardModelLoss([1, 0], [0, 2]);
  const high = rewardModelLoss([101, 100], [100, 102]);
  expect(high.loss).toBeCloseTo(low.loss, 12);
  expect(low.accuracy).toBe(0.5);
  expect(low.loss).toBeCloseTo((Math.log1p(Math.exp(-1)) + Math.log1p(Math.exp(2))) / 2, 12);
});
