import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance, nearest } from './nearest.ts';

const word = fc.string({ minLength: 0, maxLength: 8 });

describe('editDistance', () => {
  it('counts a swap of adjacent letters once', () => {
    expect(editDistance('lr', 'rl')).toBe(1);
    expect(editDistance('rollout', 'rolluot')).toBe(1);
    expect(editDistance('kitten', 'sitting')).toBe(3);
  });

  it('is symmetric and at most the length of the longer word', () => {
    fc.assert(
      fc.property(word, word, (a, b) => {
        const distance = editDistance(a, b);
        expect(distance).toBe(editDistance(b, a));
        expect(distance === 0).toBe(a === b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
      }),
    );
  });
});

describe('nearest', () => {
  it('finds the intended word in any case and with any separators', () => {
    expect(nearest('lerning_rate', ['lr', 'learning_rate'])).toBe('learning_rate');
    expect(nearest('maxResponseLength', ['max_prompt_length', 'max_response_length'])).toBe('max_response_length');
    expect(nearest('statsu', ['status', 'stop'])).toBe('status');
  });

  it('prefers a word that goes on where the given one ends', () => {
    const ratios = ['clip_ratio', 'clip_ratio_c', 'clip_ratio_low', 'clip_ratio_high'];
    expect(nearest('clip_ratio_hi', ratios)).toBe('clip_ratio_high');
    expect(nearest('clip_ratio_high', ratios)).toBe('clip_ratio_high');
    expect(nearest('clipRatio', ratios)).toBe('clip_ratio');
    expect(nearest('clip_ratoi', ratios)).toBe('clip_ratio');
    expect(nearest('clip', ['clip_ratio_high', 'flip'])).toBe('flip');
  });

  it('returns undefined when no word is near', () => {
    expect(nearest('entropy', ['lr', 'clip_ratio'])).toBeUndefined();
    expect(nearest('y', ['n', 'lr'])).toBeUndefined();
  });

  it('always finds a word with one letter changed', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{4,10}$/), fc.nat(), (known, position) => {
        const at = position % known.length;
        const misspelled = `${known.slice(0, at)}9${known.slice(at + 1)}`;
        expect(nearest(misspelled, [known])).toBe(known);
      }),
    );
  });
});
