import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { actorTotal, type ActorLossConfig, type ActorLossInput } from './actor-total.ts';
import { aggregate, batchTotals } from './aggregate.ts';
import { LOSS_AGG_MODES, POLICY_LOSS_NAMES, PRIME_LOSSES, type LossAggMode } from './names.ts';
import { arbitraryActorInput, arbitraryLossInput, arbitraryRows, arbitraryValues } from './arbitrary.test-support.ts';
import { categorical, logitsGradient } from '../../tests/conformance/categorical.ts';
import { teacherLoss, type DistillationConfig } from './distillation/teacher-loss.ts';
import { topkLoss } from './distillation/topk.ts';
import { comparedPlaces, gradientError, numericGradient } from './finite-difference.test-support.ts';
import { klPenalty } from './kl.ts';
import { policyLoss, type PolicyLossConfig, type PolicyLossInput } from './policy-loss/index.ts';
import { preferenceLoss } from './preference-loss.ts';
import { primeLoss } from './prime/reward-model-loss.ts';
import type { RaggedRows } from './ragged.ts';
import { parseRolloutCorrection } from './rollout-correction/options.ts';
import { sftLoss } from './sft-loss.ts';
import { valueLoss } from './value-loss.ts';

const TOLERANCE = 1e-5;

/** Every key that some loss reads, with values at which its terms matter for a handful of tokens. */
function config(lossAggMode: PolicyLossConfig['lossAggMode'], rows: RaggedRows): PolicyLossConfig {
  return {
    lossAggMode,
    totals: { ...batchTotals(rows, 16), batchNumTokens: 7 },
    clipRatio: 0.2,
    clipRatioHigh: 0.28,
    clipRatioC: 3,
    clipCovRatio: 0.3,
    clipCovLb: 0.1,
    klCovRatio: 0.3,
    ppoKlCoef: 0.5,
    droBeta: 0.4,
    sppoEta: 0.7,
    gvpoBeta: 0.3,
    groupSize: 2,
    flowrlBetaCoef: 2,
    dpoLabelSmoothing: 0.1,
    dpoBeta: 0.5,
    rolloutCorrection: parseRolloutCorrection({ rollout_rs: 'token_k1', rollout_rs_threshold: '0.2_5' }),
    seed: [1, 2],
  };
}

describe.each(LOSS_AGG_MODES)('gradients under %s agree with finite differences', (mode) => {
  test('aggregation', () => {
    const batch = arbitraryRows.chain((rows) =>
      fc.tuple(fc.constant(rows), arbitraryValues(rows.mask_T.length, -3, 3)),
    );
    fc.assert(
      fc.property(batch, ([rows, values_T]) => {
        const value = (x: Float64Array) => aggregate(x, rows, mode, { globalBatchSize: 5, batchNumTokens: 9 }).value;
        const { weights_T } = aggregate(values_T, rows, mode, { globalBatchSize: 5, batchNumTokens: 9 });
        expect(gradientError(weights_T, numericGradient(value, values_T))).toBeLessThan(TOLERANCE);
      }),
    );
  });

  test.each(POLICY_LOSS_NAMES)('policy loss %s, stop-gradient terms held fixed', (name) => {
    let compared = 0;
    fc.assert(
      fc.property(arbitraryLossInput, (input) => {
        const numeric = policyGradient(name, input, config(mode, input.rows));
        const { dLogProb_T } = policyLoss(name).compute(input, config(mode, input.rows));
        compared += comparedPlaces(numeric);
        expect(gradientError(dLogProb_T, numeric)).toBeLessThan(TOLERANCE);
      }),
      { numRuns: 20 },
    );
    expect(compared).toBeGreaterThan(50);
  });

  test('the clipped value loss', () => {
    const batch = arbitraryRows.chain((rows) => {
      const values = arbitraryValues(rows.mask_T.length, -2, 2);
      return fc.tuple(fc.constant(rows), values, values, values, fc.constantFrom(undefined, 0, 0.3, 5));
    });
    fc.assert(
      fc.property(batch, ([rows, values_T, returns_T, oldValues_T, cliprangeValue]) => {
        const settings = { lossAggMode: mode, totals: { globalBatchSize: 5, batchNumTokens: 9 }, cliprangeValue };
        const of = (x: Float64Array) => valueLoss({ rows, values_T: x, returns_T, oldValues_T }, settings);
        const numeric = numericGradient((x) => of(x).loss, values_T);
        expect(gradientError(of(values_T).dValue_T, numeric)).toBeLessThan(TOLERANCE);
      }),
    );
  });

  test.each(['k2', 'k3', 'abs'])('distillation by %s as a supervised loss', (lossMode) => {
    fc.assert(
      fc.property(arbitraryActorInput, (input) => {
        expect(distillationError(input, { lossMode, usePolicyGradient: false }, mode)).toBeLessThan(TOLERANCE);
      }),
    );
  });

  test.each(['k1', 'k3'])('distillation by %s as a policy gradient', (lossMode) => {
    fc.assert(
      fc.property(arbitraryActorInput, (input) => {
        expect(distillationError(input, { lossMode, usePolicyGradient: true }, mode)).toBeLessThan(TOLERANCE);
      }),
    );
  });

  test('distillation over the top k', () => {
    const k = 3;
    const batch = arbitraryRows.chain((rows) => {
      const values = arbitraryValues(rows.mask_T.length * k, -4, -0.5);
      return fc.tuple(fc.constant(rows), values, values);
    });
    fc.assert(
      fc.property(batch, ([rows, student_TK, teacherLogProb_TK]) => {
        const of = (x: Float64Array) =>
          topkLoss(
            rows,
            { k, studentLogProb_TK: x, teacherLogProb_TK },
            {
              lossAggMode: mode,
              totals: { globalBatchSize: 5, batchNumTokens: 9 },
              logProbMinClamp: -3,
              lossMaxClamp: 1,
            },
          );
        const numeric = numericGradient((x) => of(x).loss, student_TK);
        expect(gradientError(of(student_TK).dLogProb_TK, numeric)).toBeLessThan(TOLERANCE);
      }),
      { numRuns: 30 },
    );
  });

  test('the actor loss, by log-probs and by entropies', () => {
    fc.assert(
      fc.property(arbitraryActorInput, fc.constantFrom('k1', 'k2', 'k3', 'abs'), (input, klLossType) => {
        const settings: ActorLossConfig = {
          ...config(mode, input.rows),
          lossMode: 'vanilla',
          entropyCoeff: 0.1,
          klLossCoef: 0.5,
          klLossType,
        };
        const { dLogProb_T, dEntropy_T } = actorTotal(input, settings);
        const byLogProb = numericGradient(
          (x) => actorTotal({ ...input, logProb_T: x }, settings).loss,
          Float64Array.from(input.logProb_T),
        );
        const byEntropy = numericGradient(
          (x) => actorTotal({ ...input, entropy_T: x }, settings).loss,
          Float64Array.from(input.entropy_T!),
        );
        expect(gradientError(dLogProb_T, byLogProb)).toBeLessThan(TOLERANCE);
        expect(gradientError(dEntropy_T!, byEntropy)).toBeLessThan(TOLERANCE);
      }),
    );
  });
});

test.each(['k1', 'abs', 'k2', 'k3'])('the gradient of the KL estimator %s agrees with finite differences', (type) => {
  fc.assert(
    fc.property(arbitraryValues(4, -6, 0), arbitraryValues(4, -6, 0), (logProb_T, ref_T) => {
      const total = (x: Float64Array) => klPenalty(x, ref_T, type).kl_T.reduce((a, b) => a + b, 0);
      expect(
        gradientError(klPenalty(logProb_T, ref_T, type).dLogProb_T, numericGradient(total, logProb_T)),
      ).toBeLessThan(1e-4);
    }),
  );
});

test('a "+" estimator has its base\'s value and the gradient of k2', () => {
  const [logProb_T, ref_T] = [Float64Array.of(-1, -30, -0.5), Float64Array.of(-2, -0.1, -0.5)];
  const plus = klPenalty(logProb_T, ref_T, 'k3+');
  expect(plus.kl_T).toEqual(klPenalty(logProb_T, ref_T, 'k3').kl_T);
  expect(plus.dLogProb_T).toEqual(klPenalty(logProb_T, ref_T, 'k2').dLogProb_T);
});

test('the gradient of the supervised loss agrees with finite differences', () => {
  const batch = arbitraryRows.chain((rows) =>
    fc.tuple(fc.constant(rows.mask_T), arbitraryValues(rows.mask_T.length, -5, 0)),
  );
  fc.assert(
    fc.property(batch, ([mask_T, logProb_T]) => {
      const numeric = numericGradient((x) => sftLoss(x, mask_T, 11, 2).loss, logProb_T);
      expect(gradientError(sftLoss(logProb_T, mask_T, 11, 2).dLogProb_N, numeric)).toBeLessThan(TOLERANCE);
    }),
  );
});

test('the gradient of log-prob and entropy by logits agrees with finite differences', () => {
  fc.assert(
    fc.property(arbitraryValues(6, -4, 4), fc.nat(5), (logits_V, label) => {
      const value = (x: Float64Array) => {
        const head = categorical(x);
        return 0.7 * head.logProbs_V[label]! - 0.3 * head.entropy;
      };
      const analytic = logitsGradient(categorical(logits_V), label, 0.7, -0.3);
      expect(gradientError(analytic, numericGradient(value, logits_V))).toBeLessThan(TOLERANCE);
    }),
  );
});

test.each(['token', 'sequence'])('the gradient of bypass_mode with weights per %s holds them fixed', (rollout_is) => {
  fc.assert(
    fc.property(arbitraryLossInput, (input) => {
      fc.pre(input.rows.mask_T.length > 0 && Array.from(input.rows.mask_T).includes(1));
      const rolloutCorrection = parseRolloutCorrection({ rollout_is, loss_type: 'reinforce' });
      const settings = { ...config('token-mean', input.rows), rolloutCorrection };
      const { dLogProb_T } = policyLoss('bypass_mode').compute(input, settings);
      expect(gradientError(dLogProb_T, policyGradient('bypass_mode', input, settings))).toBeLessThan(TOLERANCE);
    }),
    { numRuns: 30 },
  );
});

test("the gradient of flowrl by the head's log Z agrees with finite differences", () => {
  fc.assert(
    fc.property(arbitraryLossInput, (input) => {
      const of = (logZ_S: Float64Array) =>
        policyLoss('flowrl').compute({ ...input, logZ_S }, config('token-mean', input.rows));
      const logZ_S = Float64Array.from(input.logZ_S!);
      const numeric = numericGradient((x) => of(x).loss, logZ_S);
      expect(gradientError(of(logZ_S).dLogZ_S!, numeric)).toBeLessThan(TOLERANCE);
    }),
  );
});

test.each(['sigmoid', 'ipo'])('the gradient of the preference loss %s agrees with finite differences', (lossType) => {
  const values = arbitraryValues(3, -4, 0);
  fc.assert(
    fc.property(values, values, values, values, (chosen_G, rejected_G, refChosen_G, refRejected_G) => {
      const of = (chosen: Float64Array, rejected: Float64Array) =>
        preferenceLoss(
          { chosen_G: chosen, rejected_G: rejected, reference: { chosen_G: refChosen_G, rejected_G: refRejected_G } },
          { beta: 0.5, lossType, labelSmoothing: 0.2 },
        );
      const { dChosen_G } = of(chosen_G, rejected_G);
      const byChosen = numericGradient((x) => of(x, rejected_G).loss, chosen_G);
      const byRejected = numericGradient((x) => of(chosen_G, x).loss, rejected_G);
      expect(gradientError(dChosen_G, byChosen)).toBeLessThan(TOLERANCE);
      expect(
        gradientError(
          dChosen_G.map((d) => -d),
          byRejected,
        ),
      ).toBeLessThan(TOLERANCE);
    }),
  );
});

test.each(PRIME_LOSSES)("the gradient of PRIME's reward model loss %s agrees with finite differences", (loss) => {
  let compared = 0;
  fc.assert(
    fc.property(
      arbitraryLossInput,
      arbitraryValues(4, 0, 1),
      arbitraryValues(4, -5, 0),
      (input, accuracies_S, groupQ_S) => {
        const detachedQ_T = Float64Array.from(input.logProb_T);
        const held = { rows: input.rows, accuracies_S, groups_S: input.groups_S!, groupQ_S, detachedQ_T };
        const of = (q_T: Float64Array) => primeLoss({ ...held, q_T }, { loss, beta: 0.4 });
        const numeric = numericGradient((x) => of(x).loss, detachedQ_T);
        compared += comparedPlaces(numeric);
        expect(gradientError(of(detachedQ_T).dQ_T, numeric)).toBeLessThan(TOLERANCE);
      },
    ),
  );
  expect(compared).toBeGreaterThan(100);
});

/** The gradient by central differences of the log-probs; what the loss reads without a gradient stays as it is. */
function policyGradient(name: string, input: PolicyLossInput, settings: PolicyLossConfig): Float64Array {
  const logProb_T = Float64Array.from(input.logProb_T);
  const held = { ...input, detachedLogProb_T: logProb_T };
  return numericGradient((x) => policyLoss(name).compute({ ...held, logProb_T: x }, settings).loss, logProb_T);
}

function distillationError(
  input: ActorLossInput,
  form: Pick<DistillationConfig, 'lossMode' | 'usePolicyGradient'>,
  lossAggMode: LossAggMode,
): number {
  const settings = { ...form, lossAggMode, totals: { globalBatchSize: 5, batchNumTokens: 9 }, lossMaxClamp: 1 };
  const logProb_T = Float64Array.from(input.logProb_T);
  const held = { ...input, teacherLogProb_T: input.refLogProb_T!, detachedLogProb_T: logProb_T };
  const numeric = numericGradient((x) => teacherLoss({ ...held, logProb_T: x }, settings).loss, logProb_T);
  return gradientError(teacherLoss(held, settings).dLogProb_T, numeric);
}
