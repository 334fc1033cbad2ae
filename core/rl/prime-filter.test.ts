import { expect, test } from 'vitest';
import { primeSelection, type PrimeFilter } from './prime-filter.ts';

const scores = [0, 0, 1, 0, 1, 1];
const lengths = [5, 5, 5, 9, 5, 5];
const groups = ['none', 'none', 'some', 'some', 'all', 'all'];
const select = (filter: PrimeFilter) => primeSelection(scores, lengths, groups, filter);

test('groups whose mean score is within the bounds come first; too many rows are dropped', () => {
  const accuracy = { lowest: 0.2, highest: 0.8 };
  expect(select({ accuracy, oversampleFactor: 3 })).toEqual({ passes_G: [false, true, false], keptRows: [2, 3] });
  expect(select({ accuracy, oversampleFactor: 1 }).keptRows).toEqual([2, 3, 0, 1, 4, 5]);
});

test('the bounds are included', () => {
  expect(select({ accuracy: { lowest: 0, highest: 0.5 }, oversampleFactor: 1 }).passes_G).toEqual([true, true, false]);
});

test('a group with a response one token below the limit counts as truncated', () => {
  expect(select({ maxResponseLength: 10, oversampleFactor: 1 }).passes_G).toEqual([true, false, true]);
  expect(select({ maxResponseLength: 11, oversampleFactor: 1 }).passes_G).toEqual([true, true, true]);
});

test('without conditions every group passes, and an empty batch stays empty', () => {
  expect(select({ oversampleFactor: 2 })).toEqual({ passes_G: [true, true, true], keptRows: [0, 1, 2] });
  expect(primeSelection([], [], [], { oversampleFactor: 4 })).toEqual({ passes_G: [], keptRows: [] });
});
