import { describe, expect, it } from 'vitest';
import { LOSS_AGG_MODES } from '../names.ts';
import { policyLoss } from '../policy-loss/index.ts';
import { checkEstimator, checkLoss } from './check.ts';
import { ownLossCall, ownLossResult } from './loss.ts';
import { trialBatches, trialLossInput } from './trial-batch.ts';
import type { Detached, OwnLossInput, OwnPolicyLoss } from './types.ts';

const settings = { lossAggMode: 'token-mean', clipRatio: 0.2, clipRatioC: 3 } as const;

type Each = (x: { ratio: number; advantage: number; held: number }) => readonly [loss: number, derivative: number];

/** A loss from a function of one token's ratio; `held` is the ratio without a gradient. */
function perToken(each: Each, more: Partial<OwnPolicyLoss> = {}): OwnPolicyLoss {
  const compute = ({ logProb_T }: OwnLossInput, { logProb_T: held_T, oldLogProb_T, advantages_T }: Detached) => {
    const pairs = Array.from(logProb_T, (value, t) =>
      each({
        ratio: Math.exp(value - oldLogProb_T[t]!),
        held: Math.exp(held_T[t]! - oldLogProb_T[t]!),
        advantage: advantages_T[t]!,
      }),
    );
    return { loss_T: Float64Array.from(pairs, ([x]) => x), dLoss_T: Float64Array.from(pairs, ([, d]) => d) };
  };
  return { scope: 'token', needs: [], compute, ...more } as OwnPolicyLoss;
}

const clip: Each = ({ ratio, advantage }) => {
  const bounded = Math.min(Math.max(ratio, 0.8), 1.2);
  const clipped = -advantage * bounded > -advantage * ratio;
  return clipped ? [-advantage * bounded, 0] : [-advantage * ratio, -advantage * ratio];
};

/** GSPO's: the ratio of a response is the mean of its tokens', and moves with each of them. */
const perSequence: OwnPolicyLoss = {
  scope: 'sequence',
  needs: [],
  compute({ rows: { offsets_S1, mask_T }, logProb_T, aggregate }, { oldLogProb_T, advantages_T }) {
    const loss_T = new Float64Array(logProb_T.length);
    const ratio_S = new Float64Array(offsets_S1.length - 1);
    const count_S = new Float64Array(ratio_S.length);
    const tokens = (s: number) =>
      Array.from({ length: offsets_S1[s + 1]! - offsets_S1[s]! }, (_, i) => offsets_S1[s]! + i).filter(
        (t) => mask_T[t] === 1,
      );
    for (let s = 0; s < ratio_S.length; s++) {
      count_S[s] = tokens(s).length;
      const mean = tokens(s).reduce((sum, t) => sum + logProb_T[t]! - oldLogProb_T[t]!, 0) / count_S[s]!;
      ratio_S[s] = Math.exp(mean);
      for (const t of tokens(s)) loss_T[t] = -advantages_T[t]! * ratio_S[s]!;
    }
    const { value, weights_T } = aggregate(loss_T);
    const dLogProb_T = new Float64Array(logProb_T.length);
    for (let s = 0; s < ratio_S.length; s++) {
      const dRatio = tokens(s).reduce((sum, t) => sum - weights_T[t]! * advantages_T[t]!, 0);
      for (const t of tokens(s)) dLogProb_T[t] = (dRatio * ratio_S[s]!) / count_S[s]!;
    }
    return { loss: value, dLogProb_T };
  },
};

describe.each(LOSS_AGG_MODES)('the check of a gradient under %s', (lossAggMode) => {
  it.each([
    ['a policy gradient', perToken(({ ratio, advantage }) => [-advantage * ratio, -advantage * ratio])],
    ['a clip', perToken(clip)],
    [
      'a weight that is held fixed',
      perToken(({ ratio, held, advantage }) => [
        -advantage * Math.min(held, 1.2) * Math.log(ratio),
        -advantage * Math.min(held, 1.2),
      ]),
    ],
    ['a loss of whole responses', perSequence],
  ])('passes %s', (_, loss) => {
    const { tokens, kinks, disagreeing, largest } = checkLoss(loss, { ...settings, lossAggMode });
    expect({ kinks, disagreeing }).toEqual({ kinks: 0, disagreeing: 0 });
    expect(tokens).toBeGreaterThan(100);
    expect(largest.difference).toBeLessThan(1e-6);
  });

  it.each([
    ['a forgotten factor', perToken(({ ratio, advantage }) => [-advantage * ratio, -advantage])],
    ['a wrong sign', perToken(({ ratio, advantage }) => [-advantage * ratio, advantage * ratio])],
    [
      'a weight that should be held fixed',
      perToken(({ ratio, advantage }) => [-advantage * ratio * Math.log(ratio), -advantage * ratio]),
    ],
    ['a small error', perToken(({ ratio, advantage }) => [-advantage * ratio, -advantage * ratio * 1.001])],
  ])('finds %s', (_, loss) => {
    const { disagreeing, largest } = checkLoss(loss, { ...settings, lossAggMode });
    expect(disagreeing).toBeGreaterThan(20);
    expect(Math.abs(largest.given - largest.numeric)).toBe(largest.difference);
  });
});

describe('the check of a loss', () => {
  it('leaves out the places of a kink: here every token of the batch whose ratios are 1', () => {
    const loss = perToken(({ ratio, advantage }) => [
      -advantage * ratio + Math.abs(ratio - 1),
      -advantage * ratio + Math.sign(ratio - 1) * ratio,
    ]);
    const { kinks, disagreeing } = checkLoss(loss, settings);
    const valid = Array.from(trialLossInput(0).rows.mask_T).filter((mask) => mask === 1).length;
    expect({ kinks, disagreeing }).toEqual({ kinks: valid, disagreeing: 0 });
  });

  it('finds a loss that depends on tokens outside of the mask', () => {
    const sloppy: OwnPolicyLoss = {
      scope: 'sequence',
      needs: [],
      compute: ({ logProb_T }) => ({
        loss: logProb_T.reduce((sum, x) => sum + x, 0),
        dLogProb_T: logProb_T.map(() => 1),
      }),
    };
    expect(() => checkLoss(sloppy, settings)).toThrow(/token \d+ is outside of the mask/);
  });

  it('refuses a loss that is not a function of its arguments', () => {
    const random = perToken(({ ratio, advantage }) => [-advantage * ratio + Math.random(), -advantage * ratio]);
    expect(() => checkLoss(random, settings)).toThrow('compute gives different results for equal inputs');
    let calls = 0;
    const counting = perToken(({ advantage }) => [advantage * calls++, 0]);
    expect(() => checkLoss(counting, settings)).toThrow('compute gives different results for equal inputs');
  });

  it('gives what is needed, and nothing else', () => {
    const seen = new Set<string>();
    const looking = (needs: OwnPolicyLoss['needs']) =>
      perToken(() => [0, 0], {
        needs,
        compute: ({ logProb_T }: OwnLossInput, detached: Detached) => {
          for (const name of Object.keys(detached)) seen.add(name);
          return { loss_T: logProb_T.map(() => 0), dLoss_T: logProb_T.map(() => 0) };
        },
      } as Partial<OwnPolicyLoss>);
    checkLoss(looking([]), settings);
    expect([...seen].sort()).toEqual(['advantages_T', 'logProb_T', 'oldLogProb_T']);
    checkLoss(looking(['entropy', 'refLogProbs', 'rolloutLogProbs', 'seed', 'values']), settings);
    expect([...seen].sort()).toEqual([
      ...[
        'advantages_T',
        'entropy_T',
        'logProb_T',
        'oldLogProb_T',
        'refLogProb_T',
        'rolloutLogProb_T',
        'seed',
        'values_T',
      ],
    ]);
    expect(() =>
      ownLossCall(['values'], { ...trialLossInput(0), values_T: undefined }, { ...settings, totals: {} }),
    ).toThrow('the policy loss needs values, and the batch has none');
  });
});

it('PPO’s clip as a module of one’s own gives the loss, gradient and KL of the built-in one', () => {
  for (let batch = 0; batch < trialBatches; batch++) {
    const input = trialLossInput(batch);
    // A bound that is never reached: the module has no dual clip.
    const config = { ...settings, clipRatioC: 1e9, totals: { batchNumTokens: 30, globalBatchSize: 7 } };
    const own = ownLossResult(perToken(clip), ownLossCall([], input, config));
    const built = policyLoss('vanilla').compute(input, config);
    expect(own.loss).toBeCloseTo(built.loss, 14);
    expect(own.metrics['actor/ppo_kl']).toBeCloseTo(built.metrics['actor/ppo_kl'] ?? NaN, 14);
    own.dLogProb_T.forEach((value, t) => expect(value).toBeCloseTo(built.dLogProb_T[t]!, 14));
  }
});

it('an estimator may give values per token, and returns of their own', () => {
  const compute = ({ rewards_T }: { readonly rewards_T: Float64Array }) => ({
    advantages_T: rewards_T.map((r) => r + NaN * 0 - r + 1),
  });
  expect(() => checkEstimator({ needs: [], compute }, { gamma: 1, lam: 1, normAdvByStdInGrpo: true })).toThrow(
    /advantages_T\[\d+\] is NaN/,
  );
  const fine = ({ rewards_T }: { readonly rewards_T: Float64Array }) => ({
    advantages_T: rewards_T,
    returns_T: rewards_T.map((r) => 2 * r),
  });
  checkEstimator({ needs: [], compute: fine }, { gamma: 1, lam: 1, normAdvByStdInGrpo: true });
});
