/** What the run under losses counts as decoded for nothing. */
import { expect, it } from 'vitest';
import { DecodedTokens } from './measure.ts';

it('counts what another worker did not get from the journal, with what a lost one decoded since its last word', () => {
  const tokens = new DecodedTokens(300);
  tokens.heard('rollout-1', 'a.w1', 100, 1_000);
  tokens.heard('rollout-2', 'b.w1', 80, 1_000);
  tokens.heard('rollout-3', 'c.w1', 60, 1_000);
  tokens.lost('a', 1_200); // 60 tokens later
  tokens.lost('c', 9_000); // after so long without a word it had no job
  tokens.heard('rollout-1', 'b.w1', 120, 2_000); // resumed 110
  tokens.heard('rollout-2', 'b.w1', 90, 2_000); // the same worker
  tokens.heard('rollout-3', 'b.w1', 70, 2_000); // resumed 75: more than was told
  expect(tokens.thrownAway(new Map([['rollout-1', 110]]))).toBe(50 + 60);
  expect(
    tokens.thrownAway(
      new Map([
        ['rollout-1', 110],
        ['rollout-3', 75],
      ]),
    ),
  ).toBe(50);
  expect(tokens.thrownAway(new Map())).toBe(160 + 60);
});
