import fc from 'fast-check';
import { expect, it } from 'vitest';
import { arbitraryRows, arbitraryValues } from './arbitrary.test-support.ts';
import { raggedRows } from './ragged.ts';
import { valueLoss } from './value-loss.ts';

const batch = arbitraryRows.chain((rows) => {
  const values = arbitraryValues(rows.mask_T.length, -3, 3);
  return fc.record({ rows: fc.constant(rows), values_T: values, returns_T: values, oldValues_T: values });
});
const tokenMean = (batchNumTokens: number) => ({ lossAggMode: 'token-mean', totals: { batchNumTokens } }) as const;

it('without clipping has the bits of (v − R)·m/n, which runs have recorded', () => {
  fc.assert(
    fc.property(batch, fc.integer({ min: 1, max: 100 }), (input, n) => {
      const { loss, dValue_T } = valueLoss(input, tokenMean(n));
      let want = 0;
      dValue_T.forEach((derivative, t) => {
        const [mask, error] = [input.rows.mask_T[t]!, input.values_T[t]! - input.returns_T[t]!];
        expect(derivative).toBe(mask === 0 ? 0 : (mask * error) / n);
        if (mask !== 0) want += (mask * error * error) / (2 * n);
      });
      expect(loss).toBe(want);
    }),
  );
});

it('is the sum over micro-batches that share the number of tokens', () => {
  fc.assert(
    fc.property(batch, fc.nat(20), fc.constantFrom(undefined, 0.2), (input, border, cliprangeValue) => {
      const tokens = input.values_T.length;
      const cut = border % (tokens + 1);
      const part = (from: number, to: number) =>
        valueLoss(
          {
            rows: raggedRows([to - from], Array.from(input.rows.mask_T).slice(from, to)),
            values_T: input.values_T.slice(from, to),
            returns_T: input.returns_T.slice(from, to),
            oldValues_T: input.oldValues_T.slice(from, to),
          },
          { ...tokenMean(5), cliprangeValue },
        ).loss;
      expect(part(0, cut) + part(cut, tokens)).toBeCloseTo(part(0, tokens), 10);
    }),
  );
});

it('with clipping is never smaller than without, and equal for a wide range', () => {
  fc.assert(
    fc.property(batch, fc.double({ min: 0, max: 2, noNaN: true }), (input, cliprangeValue) => {
      const free = valueLoss(input, tokenMean(7));
      expect(valueLoss(input, { ...tokenMean(7), cliprangeValue }).loss).toBeGreaterThanOrEqual(free.loss);
      expect(valueLoss(input, { ...tokenMean(7), cliprangeValue: 10 })).toEqual(free);
    }),
  );
});

it('ignores NaN outside the mask, is NaN over nothing, and refuses missing old values', () => {
  const rows = raggedRows([2, 1], [1, 0, 0]);
  const input = { rows, values_T: [1, NaN, NaN], returns_T: [0, 1, NaN] };
  const result = valueLoss(input, { lossAggMode: 'token-mean', totals: {} });
  expect(result.loss).toBe(0.5);
  expect([...result.dValue_T]).toEqual([1, 0, 0]);
  expect(result.metrics['critic/vpred_mean']).toBeCloseTo(1, 6);
  const nothing = { ...input, rows: raggedRows([2, 1], [0, 0, 0]) };
  expect(valueLoss(nothing, { lossAggMode: 'token-mean', totals: {} }).loss).toBeNaN();
  expect(valueLoss(nothing, tokenMean(4)).loss).toBe(0);
  expect(valueLoss(nothing, tokenMean(0)).loss).toBe(0);
  expect(() => valueLoss(input, { ...tokenMean(4), cliprangeValue: 0.5 })).toThrow(/values before the update/);
  expect(() => valueLoss({ ...input, returns_T: [0] }, tokenMean(4))).toThrow(/returns has 1 values for 3 tokens/);
});
