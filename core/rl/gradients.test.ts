import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { actorTotal, type ActorLossConfig } from './actor-total.ts';
import { aggregate, batchTotals } from './aggregate.ts';
import { LOSS_AGG_MODES } from './names.ts';
import { arbitraryActorInput, arbitraryRows, arbitraryValues } from './arbitrary.test-support.ts';
import { categorical, logitsGradient } from './categorical.ts';
import { gradientError, numericGradient } from './finite-difference.test-support.ts';
import { klPenalty } from './kl.ts';
import { policyLoss, type PolicyLossConfig, type PolicyLossInput } from './policy-loss/index.ts';
import { broadcastRows, type RaggedRows } from './ragged.ts';
import { sftLoss } from './sft-loss.ts';

const TOLERANCE = 1e-5;

function config(lossAggMode: PolicyLossConfig['lossAggMode'], rows: RaggedRows): PolicyLossConfig {
  return {
    lossAggMode,
    totals: { ...batchTotals(rows, 16), batchNumTokens: 7 },
    clipRatio: 0.2,
    clipRatioHigh: 0.28,
    clipRatioC: 3,
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

  test.each(['vanilla', 'sapo', 'geo_mean'])('%s', (name) => {
    fc.assert(
      fc.property(arbitraryActorInput, (input) => {
        expect(policyError(name, input, config(mode, input.rows))).toBeLessThan(TOLERANCE);
      }),
    );
  });

  test('gspo, where a row has one advantage (its gradient goes straight through to each token)', () => {
    fc.assert(
      fc.property(arbitraryActorInput, arbitraryValues(5, -2, 2), (input, advantages_S) => {
        const ofRow = {
          ...input,
          advantages_T: broadcastRows(advantages_S, input.rows),
          rolloutIsWeights_T: undefined,
        };
        expect(policyError('gspo', ofRow, config(mode, input.rows))).toBeLessThan(TOLERANCE);
      }),
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

function policyError(name: string, input: PolicyLossInput, settings: PolicyLossConfig): number {
  const loss = policyLoss(name);
  const numeric = numericGradient(
    (x) => loss.compute({ ...input, logProb_T: x }, settings).loss,
    Float64Array.from(input.logProb_T),
  );
  return gradientError(loss.compute(input, settings).dLogProb_T, numeric);
}
