import fc from 'fast-check';
import { expect, test } from 'vitest';
import { arbitraryRows } from '../arbitrary.test-support.ts';
import { raggedRows, rowCount } from '../ragged.ts';
import { outcomeScores, rewardsAtLastToken } from './outcomes.ts';

test('scores placed on tokens are the sums of their rows again', () => {
  const scored = arbitraryRows.chain((rows) =>
    fc.tuple(
      fc.constant(rows),
      fc.array(fc.float({ noNaN: true }), { minLength: rowCount(rows), maxLength: rowCount(rows) }),
    ),
  );
  fc.assert(
    fc.property(scored, ([rows, scores]) => {
      expect([...outcomeScores(rewardsAtLastToken(scores, rows), rows)]).toEqual(scores.map((score) => score + 0));
    }),
  );
});

test('a score stands on the last token that the policy made, or on the last token if it made none', () => {
  const rows = raggedRows([3, 2, 1], [1, 1, 0, 0, 0, 1]);
  expect([...rewardsAtLastToken([1, 2, 3], rows)]).toEqual([0, 1, 0, 0, 2, 3]);
});

test('the outcome score includes rewards of masked tokens', () => {
  expect([...outcomeScores([1, 2, 4], raggedRows([2, 1], [1, 0, 0]))]).toEqual([3, 4]);
});

test('a score without a token is refused, and so are rewards of another length', () => {
  expect([...rewardsAtLastToken([1, 0], raggedRows([1, 0]))]).toEqual([1]);
  expect(() => rewardsAtLastToken([1, 2], raggedRows([1, 0]))).toThrow(/sample 1 has the score 2 and no token/);
  expect(() => outcomeScores([1, 2], raggedRows([1]))).toThrow(/rewards has 2 values for 1 tokens/);
});
