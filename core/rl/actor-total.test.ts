import fc from 'fast-check';
import { expect, test } from 'vitest';
import { actorTotal, reduceActorMetrics, type ActorLossConfig } from './actor-total.ts';
import { batchTotals } from './aggregate.ts';
import { LOSS_AGG_MODES } from './names.ts';
import { arbitraryActorInput, selectRows } from './arbitrary.test-support.ts';
import { countPositiveTokens } from './positive-nll.ts';
import { rowCount } from './ragged.ts';

test.each(LOSS_AGG_MODES)('micro-batches add up to the mini-batch under %s, however it is split', (lossAggMode) => {
  fc.assert(
    fc.property(arbitraryActorInput, fc.array(fc.nat(2), { minLength: 5, maxLength: 5 }), (input, part_S) => {
      const settings: ActorLossConfig = {
        lossMode: 'vanilla',
        lossAggMode,
        totals: batchTotals(input.rows, 8),
        clipRatio: 0.2,
        clipRatioC: 3,
        entropyCoeff: 0.01,
        klLossCoef: 0.1,
        klLossType: 'low_var_kl',
        positiveNllCoef: 0.1,
        positiveTokens: countPositiveTokens(input.rows, input.scores_S ?? []),
      };
      const whole = actorTotal(input, settings);
      fc.pre(Number.isFinite(whole.loss));
      const rows = Array.from({ length: rowCount(input.rows) }, (_, s) => s);
      const splits = [0, 1, 2]
        .map((part) => rows.filter((s) => part_S[s] === part))
        .filter((members) => members.length > 0);
      const parts = splits.map((members) => actorTotal(selectRows(input, members), settings));
      expect(parts.reduce((sum, part) => sum + part.loss, 0)).toBeCloseTo(whole.loss, 10);
      splits.forEach((members, i) => {
        const rowsOfWhole = selectRows({ ...input, logProb_T: whole.dLogProb_T, entropy_T: whole.dEntropy_T }, members);
        expect(parts[i]!.dLogProb_T).toEqual(rowsOfWhole.logProb_T);
        expect(parts[i]!.dEntropy_T).toEqual(rowsOfWhole.entropy_T);
      });
      const metrics = reduceActorMetrics(parts.map((part) => part.metrics));
      expect(metrics['actor/kl_loss']).toBeCloseTo(whole.metrics['actor/kl_loss']!, 10);
      expect(metrics['actor/kl_coef']).toBeCloseTo(0.1, 12);
      expect(metrics['actor/positive_nll_loss']).toBeCloseTo(whole.metrics['actor/positive_nll_loss']!, 10);
    }),
  );
});

test('a loss term without its inputs is refused', () => {
  const input = {
    rows: { offsets_S1: [0, 1], mask_T: [1] },
    logProb_T: [-1],
    oldLogProb_T: [-1],
    advantages_T: [1],
  };
  const settings = {
    lossMode: 'vanilla',
    lossAggMode: 'token-mean',
    totals: {},
    clipRatio: 0.2,
    clipRatioC: 3,
  } as const;
  expect(actorTotal(input, { ...settings, entropyCoeff: 0 }).dLogProb_T).toEqual(Float64Array.of(-1));
  expect(() => actorTotal(input, { ...settings, entropyCoeff: 0.1 })).toThrow(/entropies/);
  expect(() => actorTotal(input, { ...settings, entropyCoeff: 0, klLossCoef: 0.1 })).toThrow(/reference/);
  expect(() => actorTotal(input, { ...settings, entropyCoeff: 0, positiveNllCoef: 0.1 })).toThrow(/scores/);
  expect(() => actorTotal(input, { ...settings, lossMode: 'vanila', entropyCoeff: 0 })).toThrow(/unknown policy loss/);
});
