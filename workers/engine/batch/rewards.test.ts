import { describe, expect, it } from 'vitest';
import type { AlgorithmSettings, KlInRewardSettings } from '../../../core/wire/jobs/index.ts';
import type { Layout } from './batch-outputs.ts';
import { rewardsOf } from './rewards.ts';
import type { Sample } from '../samples/samples.ts';

/** Samples with these scores and numbers of tokens. */
function batchOf(...given: readonly (readonly [score: number, tokens: number])[]) {
  const samples = given.map(
    ([score, tokens], draw): Sample => ({
      draw,
      row: draw,
      prompt: Int32Array.of(1),
      response: new Int32Array(tokens),
      rolloutLogProbs: new Float32Array(tokens),
      mask: new Uint8Array(tokens).fill(1),
      score,
      stopReason: 1,
      columns: {},
    }),
  );
  const scoredOffsets_S1 = Int32Array.from([
    0,
    ...given.map((_, s) => given.slice(0, s + 1).reduce((n, [, t]) => n + t, 0)),
  ]);
  const mask_T = new Uint8Array(scoredOffsets_S1.at(-1) ?? 0).fill(1);
  return { samples, layout: { scoredOffsets_S1, mask_T } as unknown as Layout };
}

const adaptive: KlInRewardSettings = {
  penalty: 'kl',
  control: { type: 'adaptive', klCoef: 0.5, targetKl: 0.1, horizon: 100 },
};
const input = (klInReward?: KlInRewardSettings, klCoef: number | string = 0) => ({
  algorithm: { ...(klInReward && { klInReward }) } as AlgorithmSettings,
  before: { cursor: 0, badSteps: 0, optimizerSteps: {}, controllers: { klCoef, other: 'kept' } },
});

describe('the rewards of a batch', () => {
  it('are the scores, each on the last token of its response', () => {
    const { samples, layout } = batchOf([1, 2], [0.5, 1]);
    const rewards = rewardsOf(input(), samples, layout);
    expect([...(rewards.rewards_T as Float64Array)]).toEqual([0, 1, 0.5]);
    expect([...rewards.scores_S]).toEqual([1, 0.5]);
    expect(rewards).toMatchObject({ controllers: {}, metrics: {} });
  });

  it('are less the coefficient times the KL of each token', () => {
    const { samples, layout } = batchOf([1, 2], [0.5, 1]);
    const logProbs = {
      oldLogProbs_T: Float32Array.of(-1, -2, -3),
      refLogProbs_T: Float32Array.of(-1.5, -2, -2),
    };
    const rewards = rewardsOf(input(adaptive), samples, { ...layout, ...logProbs });
    expect([...(rewards.rewards_T as Float64Array)]).toEqual([-0.25, 1, 1]);
    expect([...(rewards.rewards_S as Float64Array)]).toEqual([0.75, 1]);
    expect([...rewards.scores_S]).toEqual([1, 0.5]);
    const kl = (0.25 - 1) / 2; // means over responses of the means over their tokens
    expect(rewards.metrics['actor/reward_kl_penalty']).toBeCloseTo(kl, 7);
    expect(rewards.metrics['actor/reward_kl_penalty_coeff']).toBe(0.5);
    expect(rewards.controllers['klCoef']).toBeCloseTo(0.5 * (1 - (0.2 * 2) / 100), 12);
  });

  it('use the coefficient of the counters, which fixed replaces by that of the recipe', () => {
    const { samples, layout } = batchOf([1, 1]);
    const logProbs = { oldLogProbs_T: Float32Array.of(-1), refLogProbs_T: Float32Array.of(-2) };
    const used = (settings: KlInRewardSettings) =>
      rewardsOf(input(settings, 0.25), samples, { ...layout, ...logProbs }).metrics['actor/reward_kl_penalty_coeff'];
    expect(used(adaptive)).toBe(0.25);
    expect(used({ ...adaptive, control: { ...adaptive.control, type: 'fixed' } })).toBe(0.5);
  });

  it('leave the coefficient as it is after a KL that is not finite', () => {
    const { samples, layout } = batchOf([1, 1]);
    const logProbs = { oldLogProbs_T: Float32Array.of(NaN), refLogProbs_T: Float32Array.of(-2) };
    expect(rewardsOf(input(adaptive, 0.25), samples, { ...layout, ...logProbs }).controllers).toEqual({ klCoef: 0.25 });
  });

  it('of an empty batch leave the controllers alone', () => {
    expect(rewardsOf(input(adaptive), [], batchOf().layout)).toMatchObject({ controllers: {}, metrics: {} });
  });
});
