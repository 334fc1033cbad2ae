import fc from 'fast-check';
import { expect, it } from 'vitest';
import { valueLoss } from './value-loss.ts';

const batch = fc.integer({ min: 1, max: 20 }).chain((tokens) =>
  fc.record({
    values: fc.array(fc.double({ min: -3, max: 3, noNaN: true }), { minLength: tokens, maxLength: tokens }),
    returns: fc.array(fc.double({ min: -3, max: 3, noNaN: true }), { minLength: tokens, maxLength: tokens }),
    mask: fc.array(fc.constantFrom(0, 1), { minLength: tokens, maxLength: tokens }),
  }),
);

it('has the gradient of its finite difference, and none outside the mask', () => {
  fc.assert(
    fc.property(batch, ({ values, returns, mask }) => {
      const tokens = 7;
      const { dValue_T } = valueLoss(values, returns, mask, tokens);
      values.forEach((value, t) => {
        const at = (by: number) => valueLoss(values.with(t, value + by), returns, mask, tokens).loss;
        expect(dValue_T[t]).toBeCloseTo((at(1e-4) - at(-1e-4)) / 2e-4, 8);
        if (mask[t] === 0) expect(dValue_T[t]).toBe(0);
      });
    }),
  );
});

it('is the sum over micro-batches that share the number of tokens', () => {
  fc.assert(
    fc.property(batch, fc.nat(20), ({ values, returns, mask }, border) => {
      const part = (from: number, to: number) =>
        valueLoss(values.slice(from, to), returns.slice(from, to), mask.slice(from, to), 5).loss;
      const cut = border % (values.length + 1);
      expect(part(0, cut) + part(cut, values.length)).toBeCloseTo(part(0, values.length), 10);
    }),
  );
});
