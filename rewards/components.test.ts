import { describe, expect, it } from 'vitest';
import { withComponents } from './components.ts';
import type { ScoreOutcome } from './host/host-types.ts';

const scored = (columns: Record<string, number | string | boolean | null>): ScoreOutcome => ({
  ok: true,
  score: 0.5,
  columns,
});

describe('the components of a score', () => {
  it('may be numbers, booleans and the score itself', () => {
    const outcomes = [scored({ format: 1, right: false }), scored({ format: 0, right: true })];
    expect(withComponents(outcomes, ['format', 'right', 'score'])).toEqual(outcomes);
  });

  it('of a number alone are its score, as acc', () => {
    expect(withComponents([scored({})], ['acc', 'score'])).toEqual([scored({})]);
  });

  it('that are missing or no number make the sample a failed one, with the reason', () => {
    const outcomes = [scored({ acc: 1 }), scored({ acc: 1, format: 'good' }), scored({ acc: 1, format: null })];
    const reason = 'the scorer returned no number "format" (algorithm.gdpo_reward_keys)';
    expect(withComponents(outcomes, ['acc', 'format'])).toEqual([
      { ok: false, code: 'bad-result', reason: `${reason}; it returned score, acc` },
      { ok: false, code: 'bad-result', reason: `${reason}, but "good"; it returned score, acc, format` },
      { ok: false, code: 'bad-result', reason: `${reason}; it returned score, acc, format` },
    ]);
  });

  it('leave failed samples as they are', () => {
    const failed: ScoreOutcome = { ok: false, code: 'timeout', reason: 'too slow' };
    expect(withComponents([failed], ['format'])).toEqual([failed]);
  });
});
