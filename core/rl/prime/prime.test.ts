import { describe, expect, test } from 'vitest';
import { softmeanAdvantages } from '../advantages/sppo.ts';
import { raggedRows } from '../ragged.ts';
import { processRewards, type ProcessRewardConfig } from './process-reward.ts';
import { primeAccuracy, primeLoss } from './reward-model-loss.ts';

const rows = raggedRows([2, 1, 3, 1]);
const input = {
  rows,
  q_T: [0.5, -0.2, 1, -1, 0.4, 0.1, 2],
  accuracies_S: [1, 0, 1, 0],
  groups_S: ['a', 'a', 'b', 'b'],
};

describe("PRIME's reward model", () => {
  test('of a group whose rows are equally accurate compares with 0', () => {
    const alike = { ...input, accuracies_S: [1, 1, 1, 1] };
    const { loss } = primeLoss(alike, { loss: 'none', beta: 1 });
    const expected = [0.3, 1, -0.5, 2].map((q) => Math.log1p(Math.exp(-q)));
    expect(loss).toBeCloseTo(expected.reduce((sum, value) => sum + value, 0) / 4, 12);
  });

  test('is as accurate as the pairs and signs that it gets right', () => {
    // Sums: 0.3, 1, -0.5, 2. Both pairs are in the wrong order; only the first sign is right.
    expect(primeAccuracy(input)).toEqual({ pairs: 0, signs: 0.25 });
    expect(primeAccuracy({ ...input, accuracies_S: [1, 1, 0, 0] }).pairs).toBe(0.5);
  });

  test('refuses an unknown loss, and rows without accuracy', () => {
    expect(() => primeLoss(input, { loss: 'bad', beta: 1 })).toThrow(
      expect.objectContaining({ hint: 'one of ce, none, bon_rm, bon_acc' }),
    );
    expect(() => primeLoss({ ...input, accuracies_S: [1] }, { loss: 'ce', beta: 1 })).toThrow(/4 rows, got 1/);
  });
});

describe("PRIME's process rewards", () => {
  const config: ProcessRewardConfig = {
    beta: 0.5,
    lambda: 0,
    useGroundTruth: true,
    granularity: 'token',
    norm: 'none',
  };

  test('leave the last token of a row without a reward, and without lambda do not use the accuracy', () => {
    expect([...processRewards(rows, input.q_T, input.accuracies_S, config)]).toEqual([0.25, 0, 0, -0.5, 0.2, 0, 0]);
  });

  test('for the whole response are one sum on its last token, with lambda the accuracy itself', () => {
    const whole = { ...config, granularity: 'whole' };
    const [, first, second] = processRewards(rows, input.q_T, input.accuracies_S, whole);
    expect([first, second]).toEqual([0.15, 0.5]);
    const withTruth = processRewards(rows, input.q_T, input.accuracies_S, { ...whole, lambda: 1 });
    [1, 2, 5, 6].forEach((t, s) => expect(withTruth[t]).toBeCloseTo(input.accuracies_S[s]!, 12));
  });

  test('normalised by the batch have a largest return of 1', () => {
    const rewards = processRewards(rows, input.q_T, input.accuracies_S, { ...config, norm: 'batch_norm' });
    const returns = [rewards[0]!, rewards[3]! + rewards[4]!, rewards[4]!];
    expect(Math.max(...returns.map(Math.abs))).toBeCloseTo(1, 5);
  });

  test('of an empty row are none; an unknown granularity or norm is refused', () => {
    expect(processRewards(raggedRows([0, 1]), [1], [1, 1], config)).toHaveLength(1);
    expect(() => processRewards(rows, input.q_T, input.accuracies_S, { ...config, granularity: 'step' })).toThrow(
      /unknown prime_granularity "step"/,
    );
    expect(() => processRewards(rows, input.q_T, input.accuracies_S, { ...config, norm: 'layer' })).toThrow(
      /prime_norm/,
    );
  });
});

describe('the advantages of SPPO', () => {
  test('are 0 for one sample, and keep their differences', () => {
    expect([...softmeanAdvantages([3])]).toEqual([0]);
    const [a, b] = softmeanAdvantages([1, 4], 0.7);
    expect(b! - a!).toBeCloseTo(3, 12);
  });

  test('approach score minus maximum for a large beta, without overflow', () => {
    expect(softmeanAdvantages([10, 1000], 50)[1]).toBeCloseTo(Math.log(2) / 50, 8);
    expect([...softmeanAdvantages([1, 3], 0)]).toEqual([-1, 1]);
  });
});
