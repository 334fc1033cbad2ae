import fc from 'fast-check';
import { expect, test } from 'vitest';
import { arbitraryRows, arbitraryValues } from './arbitrary.test-support.ts';
import { gradientError, numericGradient } from './finite-difference.test-support.ts';
import { countPositiveTokens, positiveExampleNll } from './positive-nll.ts';
import { raggedRows, rowCount } from './ragged.ts';

const rows = raggedRows([2, 2, 1], [1, 1, 1, 0, 1]);
const logProb_T = [-1, -2, -4, NaN, -8];

test('the loss is the mean over the valid tokens of rows that scored above 0', () => {
  expect(positiveExampleNll(logProb_T, rows, [1, 0.5, 0])).toEqual({
    loss: 7 / 3,
    dLogProb_T: Float64Array.of(-1 / 3, -1 / 3, -1 / 3, 0, 0),
  });
});

test('without a positive row loss and gradient are 0', () => {
  expect(positiveExampleNll(logProb_T, rows, [0, -1, NaN])).toEqual({ loss: 0, dLogProb_T: new Float64Array(5) });
});

test('micro-batches that share the count of the mini-batch add up to it', () => {
  const total = countPositiveTokens(rows, [1, 1, 1]);
  const first = positiveExampleNll([-1, -2], raggedRows([2]), [1], total);
  const rest = positiveExampleNll([-4, NaN, -8], raggedRows([2, 1], [1, 0, 1]), [1, 1], total);
  expect(first.loss + rest.loss).toBeCloseTo(positiveExampleNll(logProb_T, rows, [1, 1, 1]).loss, 12);
});

test('the gradient is that of finite differences', () => {
  const batches = arbitraryRows.chain((some) =>
    fc.tuple(fc.constant(some), arbitraryValues(some.mask_T.length, -3, -0.01), arbitraryValues(rowCount(some), -1, 1)),
  );
  fc.assert(
    fc.property(batches, ([some, logProbs, scores]) => {
      const numeric = numericGradient((x) => positiveExampleNll(x, some, scores).loss, logProbs);
      expect(gradientError(positiveExampleNll(logProbs, some, scores).dLogProb_T, numeric)).toBeLessThan(1e-6);
    }),
  );
});
