import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { displayWidth } from './width.ts';
import { wrapOwnText, wrapText } from './wrap.ts';

describe("petrel's own text", () => {
  const typed = (text: string) => text.replaceAll('petrel ', 'node cli/bin.mjs ');

  it('is wrapped around its commands, so that each can be pasted', () => {
    const text = 'it waits. Read some: petrel samples toy -i 3. Then, with lr=0.5, petrel resume toy lr=0.5; or wait.';
    expect(wrapOwnText(text, 40, (same) => same).split('\n')).toEqual([
      'it waits. Read some:',
      'petrel samples toy -i 3. Then, with',
      'lr=0.5, petrel resume toy lr=0.5; or',
      'wait.',
    ]);
    expect(wrapOwnText(text, 12, typed)).toContain('\npetrel samples toy -i 3.\n');
  });

  it('is not parted from its indentation, also where a path or a command is longer than a line', () => {
    expect(wrapOwnText('    petrel resume toy lr=0.5 --accept', 20, typed)).toBe(
      '    petrel resume toy lr=0.5 --accept',
    );
    expect(wrapOwnText(`    /${'x'.repeat(20)}: 7 rows`, 20, (same) => same)).toBe(`    /${'x'.repeat(20)}:\n7 rows`);
  });

  it('has room for its commands as they are printed', () => {
    const lines = wrapOwnText('read some: petrel samples toy; then go', 40, typed).split('\n');
    expect(lines.map(typed)).toEqual(['read some: node cli/bin.mjs samples toy;', 'then go']);
  });
});

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
