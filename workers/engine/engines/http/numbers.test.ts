import { describe, expect, it } from 'vitest';
import { isNear } from './numbers.ts';

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
