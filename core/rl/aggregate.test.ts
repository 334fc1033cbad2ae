import fc from 'fast-check';
import { expect, it } from 'vitest';
import { aggregate, aggregatedValue, batchTotals } from './aggregate.ts';
import { LOSS_AGG_MODES } from './names.ts';
import { raggedRows } from './ragged.ts';

const number = fc.oneof({ weight: 20, arbitrary: fc.float({ noNaN: true, min: -4, max: 4 }) }, fc.constant(NaN));
const rows = fc.array(fc.array(fc.record({ x: number, valid: fc.nat({ max: 1 }) }), { maxLength: 5 }), {
  maxLength: 6,
});

it.each(LOSS_AGG_MODES)('the value alone is the value of the whole: %s (seed 3)', (mode) => {
  fc.assert(
    fc.property(rows, fc.boolean(), (given, hasTotals) => {
      const mask_T = Uint8Array.from(given.flat(), ({ valid }) => valid);
      const all = raggedRows(
        given.map(({ length }) => length),
        mask_T,
      );
      const values_T = Float32Array.from(given.flat(), ({ x }) => x);
      const totals = hasTotals ? batchTotals(all, 5) : {};
      expect(aggregatedValue(values_T, all, mode, totals)).toBe(aggregate(values_T, all, mode, totals).value);
    }),
    { seed: 3, numRuns: 300 },
  );
});
