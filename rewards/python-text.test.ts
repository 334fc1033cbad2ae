import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countOf, isDigits, lastCodePoints, strip, words } from './python-text.ts';

const seed = 20_260_101;

describe("Python's rules for text", () => {
  test(`the last code points are those of the list of code points (seed ${seed})`, () => {
    const texts = fc.string({ unit: fc.constantFrom('a', '😀', '\ud83d', '\ude00', 'é') });
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 8 }), (text, count) => {
        expect(lastCodePoints(text, count)).toBe([...text].slice(-count).join(''));
      }),
      { seed },
    );
  });

  test('an emoji counts once', () => {
    expect(lastCodePoints(`a${'😀'.repeat(200)}`, 300)).toBe(`a${'😀'.repeat(200)}`);
    expect(lastCodePoints('😀'.repeat(301), 300)).toBe('😀'.repeat(300));
  });

  test('white space has the separators U+001C to U+001F and U+0085, but not U+FEFF', () => {
    expect(strip('\x1c\x85\u3000 a \ufeff')).toBe('a \ufeff');
    expect(words(' a\x1fb\u2003\nc ')).toEqual(['a', 'b', 'c']);
    expect(words(' ')).toEqual([]);
  });

  test.each([
    ['12', true],
    ['４２', true],
    ['1²', true],
    ['①', true],
    ['½', false],
    ['-1', false],
    ['', false],
  ])('isdigit of %j is %s', (text, want) => {
    expect(isDigits(text)).toBe(want);
  });

  test('counts parts that do not overlap', () => {
    expect(countOf('aaa', 'aa')).toBe(1);
    expect(countOf('', 'a')).toBe(0);
  });
});
