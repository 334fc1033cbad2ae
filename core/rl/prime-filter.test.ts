import { expect, test } from 'vitest';
import { passingFirst, reasonNotToPass } from './prime-filter.ts';

const accuracy = { lowest: 0.2, highest: 0.8 };

test('a group passes whose mean accuracy is within the bounds, both included', () => {
  expect(reasonNotToPass([0, 1], [5, 5], { accuracy })).toBeUndefined();
  expect(reasonNotToPass([0, 0, 0, 0, 1], [5, 5], { accuracy })).toBeUndefined();
  expect(reasonNotToPass([1, 1, 1, 1, 0], [5, 5], { accuracy })).toBeUndefined();
  expect(reasonNotToPass([0, 0], [5, 5], { accuracy })).toBe('its mean accuracy 0 is not between 0.2 and 0.8');
  expect(reasonNotToPass([1, 1], [5, 5], { accuracy })).toBe('its mean accuracy 1 is not between 0.2 and 0.8');
  expect(reasonNotToPass([1, 1], [5, 5], {})).toBeUndefined();
});

test('a group with a response one token below the limit counts as truncated', () => {
  expect(reasonNotToPass([0, 1], [5, 9], { maxResponseLength: 10 })).toBe(
    'a response has 9 tokens, and 9 count as truncated',
  );
  expect(reasonNotToPass([0, 1], [5, 9], { maxResponseLength: 11 })).toBeUndefined();
});

test('groups that pass come first, each in their order', () => {
  expect(passingFirst([false, true, false, true])).toEqual([1, 3, 0, 2]);
  expect(passingFirst([])).toEqual([]);
});
