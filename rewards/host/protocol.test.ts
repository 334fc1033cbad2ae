import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineSplitter } from '../lines.ts';
import { parseReply } from './protocol.ts';

function linesOf(chunks: readonly Buffer[], limit?: number): string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => lines.push(line), limit);
  for (const chunk of chunks) splitter.push(chunk);
  return lines;
}

describe('lines', () => {
  test('are the same however the bytes are divided, even inside a character', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' '))),
        fc.integer({ min: 1, max: 7 }),
        (lines, size) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
          const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
            bytes.subarray(i * size, (i + 1) * size),
          );
          expect(linesOf(chunks)).toEqual(lines);
        },
      ),
    );
  });

  test('beyond the limit are dropped, and the next line is complete', () => {
    expect(linesOf([Buffer.from('12345'), Buffer.from('678\nok\n')], 4)).toEqual(['', 'ok']);
  });
});

describe('replies', () => {
  const mark = '@petrel-1 ';

  test('are accepted only with the mark and in the right form', () => {
    expect(parseReply(`${mark}{"type":"ready"}`, mark)).toEqual({ type: 'ready' });
    expect(parseReply('{"type":"ready"}', mark)).toBeUndefined();
    expect(parseReply(`${mark}{"type":"result","id":1,"score":null,"columns":{}}`, mark)).toBeUndefined();
    expect(parseReply(`${mark}{"type":"result"`, mark)).toBeUndefined();
    expect(parseReply(`${mark}7`, mark)).toBeUndefined();
  });
});
