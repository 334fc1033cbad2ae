import { describe, expect, it } from 'vitest';
import { areNear, isNear } from './numbers.ts';

const first = { tokens: [3, 5, 7], logProbs: [-1, -2, -0.5] };

describe('two answers to a fixed prompt', () => {
  it.each([
    ['equal tokens and log-probs that rounding has moved', { tokens: [3, 5, 7], logProbs: [-1.01, -1.98, -0.52] }],
    ['another token that is as likely, and what follows from it', { tokens: [3, 6, 1], logProbs: [-1, -2.02, -3] }],
    ['another first token that is as likely', { tokens: [4, 1, 1], logProbs: [-1.02, -9, -9] }],
  ])('may be of the same weights: %s', (_, other) => {
    expect([isNear(first, other), isNear(other, first)]).toEqual([true, true]);
  });

  it.each([
    ['equal tokens and other log-probs', { tokens: [3, 5, 7], logProbs: [-1, -2, -1.5] }],
    ['another token that is less likely', { tokens: [3, 6, 7], logProbs: [-1, -2.5, -0.5] }],
  ])('are of different weights: %s', (_, other) => {
    expect([isNear(first, other), isNear(other, first)]).toEqual([false, false]);
  });
});

describe('answers to several prompts, with the tokens in another order', () => {
  const tie = { tokens: [4, 1, 1], logProbs: [-1.02, -9, -9] };

  it('may be of the same weights where rounding chooses another first token in one of them', () => {
    expect(areNear([first, first], [tie, first])).toBe(true);
  });

  it('are of a head in its own order where every first token is another one, and as likely', () => {
    expect(areNear([first, first], [tie, { ...tie, logProbs: [-1, -2, -3] }])).toBe(false);
  });

  it('are of different weights where one of them is', () => {
    expect(areNear([first, first], [first, { ...first, logProbs: [-4, -2, -0.5] }])).toBe(false);
  });
});
