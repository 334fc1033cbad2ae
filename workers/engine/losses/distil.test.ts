import { describe, expect, test } from 'vitest';
import { at } from '../../../core/at.ts';
import type { LossSettings } from '../../../core/records/schema.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { distilled, studentPass } from './distil.ts';
import { lossCoefficients } from './loss.ts';
import { cutMicroBatch } from './micro-batch.ts';

/** Two samples: prompts of 2 and 1 tokens, responses of 3 and 2, of which one token is masked. */
const batch: BatchTensors = {
  tokens_N: Int32Array.of(5, 6, 1, 2, 3, 7, 4, 1),
  offsets_S1: Int32Array.of(0, 5, 8),
  scored_T: Int32Array.of(2, 3, 4, 6, 7),
  scoredOffsets_S1: Int32Array.of(0, 3, 5),
  mask_T: Uint8Array.of(1, 0, 1, 1, 1),
  advantages_T: Float32Array.of(1, 1, 1, -1, -1),
  returns_T: new Float32Array(5),
  rewards_S: Float32Array.of(1, 0),
  oldLogProbs_T: Float32Array.of(-1, -1, -1.5, -2, -0.5),
  teacherLogProbs_T: Float32Array.of(-0.5, -2, -1, -1, -1),
  teacherTopTokens_TK: Int32Array.of(1, 2, 3, 4, 5, 6, 7, 1, 2, 3),
  teacherTopLogProbs_TK: Float32Array.from([0.6, 0.3, 0.5, 0.2, 0.7, 0.2, 0.4, 0.35, 0.9, 0.05], Math.log),
  stepOffsets_U1: Int32Array.of(0, 1),
  microOffsets_M1: Int32Array.of(0, 2),
  microSamples: Int32Array.of(1, 0),
};
const micro = cutMicroBatch(batch, Int32Array.of(1, 0));
const totals = { dpSize: 1, batchNumTokens: 4, globalBatchSize: 2, lossScaleFactor: 5, positiveTokens: 0 };
type Distillation = NonNullable<LossSettings['distillation']>;

function settingsOf(distillation: Partial<Distillation>): LossSettings & { readonly distillation: Distillation } {
  return {
    kind: 'policy',
    lossMode: 'vanilla',
    clipRatioLow: 0.2,
    clipRatioHigh: 0.2,
    clipRatioC: 3,
    lossAggMode: 'token-mean',
    entropyCoeff: 0.1,
    useKlLoss: false,
    klLossCoef: 0,
    klLossType: 'k3',
    temperature: 1,
    lossScaleFactor: 5,
    distillation: {
      lossMode: 'k3',
      topk: 2,
      useTaskRewards: true,
      coef: 0.5,
      usePolicyGradient: false,
      policyLossMode: 'vanilla',
      clipRatio: 0.2,
      clipRatioLow: 0.2,
      clipRatioHigh: 0.2,
      clipRatioC: 3,
      ...distillation,
    },
  };
}

const logProbs = Float32Array.of(-2.05, -0.6, -1.05, -1.2, -1.4, ...Array.from({ length: 10 }, (_, i) => -0.4 - i / 7));
const entropy = new Float32Array(15).fill(1.5);

describe('the pass of the student', () => {
  test('is the plain one for an estimator', () => {
    expect(studentPass(settingsOf({}), batch, micro)).toBe(micro.packed);
  });

  test('wants every position once more for each of the teacher’s tokens', () => {
    const pass = studentPass(settingsOf({ lossMode: 'forward_kl_topk' }), batch, micro);
    const own = [...micro.packed.positions_P];
    expect([...pass.positions_P]).toEqual([...own, ...own.flatMap((position) => [position, position])]);
    expect([...(pass.targets_P ?? [])].slice(5)).toEqual([7, 1, 2, 3, 1, 2, 3, 4, 5, 6]);
  });
});

describe.each<readonly [string, Partial<Distillation>, number]>([
  ['k3 beside the policy loss', {}, 5],
  ['k3 alone', { useTaskRewards: false }, 5],
  ['top-k beside the policy loss', { lossMode: 'forward_kl_topk' }, 15],
  ['top-k alone', { lossMode: 'forward_kl_topk', useTaskRewards: false }, 15],
])('%s', (_, distillation, outputs) => {
  const settings = settingsOf(distillation);
  const lossAt = (values: Float32Array) =>
    lossCoefficients(
      settings,
      batch,
      micro,
      { logProbs: values, entropy: entropy.subarray(0, outputs) },
      totals,
      [1, 0, 0],
    );
  const given = logProbs.subarray(0, outputs);

  test('has the gradient of its loss', () => {
    const { gradients } = lossAt(given);
    const h = 2 ** -7;
    for (let p = 0; p < outputs; p++) {
      const moved = (by: number) => lossAt(given.map((value, i) => (i === p ? value + by : value))).loss;
      expect(at(gradients.logProbs ?? [], p)).toBeCloseTo((moved(h) - moved(-h)) / (2 * h), 3);
    }
    const entropies = [...(gradients.entropy ?? [])];
    expect(entropies.slice(5).every((slope) => slope === 0)).toBe(true);
    expect(entropies.some((slope) => slope !== 0)).toBe(settings.distillation.useTaskRewards);
  });
});

test('the weight is 1 without the policy loss, whatever the coefficient', () => {
  const of = (coef: number) =>
    distilled(
      settingsOf({ useTaskRewards: false, coef }),
      batch,
      micro,
      { logProbs: logProbs.subarray(0, 5) },
      totals,
      () => {
        throw new Error('the policy loss is not asked');
      },
    );
  expect(of(0.1).loss).toBe(of(7).loss);
  expect(of(0.1).metrics['distillation/loss']).toBe(of(0.1).loss);
});
