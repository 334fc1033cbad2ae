import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { displayWidth } from './width.ts';
import { wrapText } from './wrap.ts';

describe('wrapped text', () => {
  it('breaks at blanks, keeps line breaks and indents every line', () => {
    expect(wrapText('one two three\n\nfour', 9, '> ')).toBe('> one two\n> three\n>\n> four');
  });

  it('cuts words that are longer than a line', () => {
    expect(wrapText('abcdefghijklmnop qr', 8)).toBe('abcdefgh\nijklmnop\nqr');
  });

  it('never passes the width, and loses nothing but blanks', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 80 }), fc.integer({ min: 10, max: 40 }), (text, columns) => {
        const wrapped = wrapText(text, columns, '  ');
        expect(Math.max(...wrapped.split('\n').map(displayWidth))).toBeLessThanOrEqual(columns);
        expect(wrapped.replace(/\s/g, '')).toBe(wrapText(text, 1_000_000).replace(/\s/g, ''));
      }),
    );
  });
});
