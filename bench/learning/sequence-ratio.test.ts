import { expect, it } from 'vitest';
import { checkLoss } from '../../core/rl/own/check.ts';
import { ownLossCall, ownLossResult } from '../../core/rl/own/loss.ts';
import { policyLoss } from '../../core/rl/policy-loss/index.ts';
import { relativeDistance } from './exact/relative-distance.ts';
import { loss } from './sequence-ratio.ts';

const settings = { lossAggMode: 'seq-mean-token-sum', clipRatio: 0.2, clipRatioC: 3 } as const;

it('the gradient of the loss is the derivative of its value', () => {
  expect(checkLoss(loss, settings)).toMatchObject({ disagreeing: 0 });
});

/** Two responses, of two tokens and of one, the first with a token outside of the mask. */
const rows = { offsets_S1: Int32Array.of(0, 3, 4), mask_T: Float64Array.of(1, 0, 1, 1) };
const advantages_T = Float64Array.of(0.5, 0.5, 0.5, -1);
const of = (logProb_T: Float64Array, oldLogProb_T: Float64Array) => {
  const input = { rows, logProb_T, oldLogProb_T, advantages_T };
  return { own: ownLossResult(loss, ownLossCall([], input, { ...settings, totals: {} })), input };
};

it('a ratio is that of the whole response', () => {
  const { own } = of(Float64Array.of(-1, -9, -0.9, -2), Float64Array.of(-1.1, -1, -0.9, -2.1));
  // exp(0.1) for both responses: neither is clipped.
  expect(own.loss).toBeCloseTo((-0.5 * Math.exp(0.1) + Math.exp(0.1)) / 2, 12);
  const far = of(Float64Array.of(-0.5, -9, -0.5, -2), Float64Array.of(-1, -1, -1, -2));
  expect(far.own.loss).toBeCloseTo((-0.5 * 1.2 + 1) / 2, 12);
  expect([...far.own.dLogProb_T]).toEqual([0, 0, 0, 0.5].map((x) => expect.closeTo(x, 12)));
});

it('with all ratios 1 the gradient is that of the built-in loss', () => {
  const logProb_T = Float64Array.of(-1, -2, -3, -0.5);
  const { own, input } = of(logProb_T, logProb_T);
  const built = policyLoss('vanilla').compute(input, { ...settings, totals: {} });
  built.dLogProb_T.forEach((value, t) => expect(own.dLogProb_T[t]).toBeCloseTo(value, 12));
});

it('gradients are compared by their norm, and never when one side lacks a parameter', () => {
  const gradients = (...values: number[]) => new Map([['weight', Float32Array.from(values)]]);
  expect(relativeDistance(gradients(3, 4), gradients(3, 5))).toBeCloseTo(1 / Math.sqrt(34), 12);
  expect(relativeDistance(gradients(3, 4), gradients(3, 4, 5))).toBeNaN();
  expect(relativeDistance(new Map(), gradients(1))).toBeNaN();
});
