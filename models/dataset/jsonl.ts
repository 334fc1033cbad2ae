/** JSON Lines, streamed: one row a line, numbered from 1; empty lines are passed over but counted. */
import { isUtf8 } from 'node:buffer';
import type { RawRow } from './raw.ts';
import { rowError } from './raw.ts';
import { parseRow } from './row-text.ts';

/** A row of more bytes could not even be made a string. */
export const mostRowBytes = 256 * 1024 * 1024;

const newline = 0x0a;

/** Throws InvalidInputError with file and row for a line that is not JSON, or not UTF-8. */
export async function* readJsonl(chunks: AsyncIterable<Uint8Array>, file: string): AsyncGenerator<RawRow> {
  let number = 0;
  for await (const lines of readLines(chunks, file))
    for (const line of lines) {
      number++;
      if (line.trim() !== '') yield parseRow(line, { file, number }, 'expected a JSON object on one line');
    }
}

/** Lines in lists as they come. */
async function* readLines(chunks: AsyncIterable<Uint8Array>, file: string): AsyncGenerator<readonly string[]> {
  let lines = 0;
  const rest: Buffer[] = [];
  let restBytes = 0;
  const decoded = async function* (): AsyncGenerator<readonly string[]> {
    const text = linesOf(Buffer.concat(rest), lines === 0);
    lines += text.lines.length;
    [rest.length, restBytes] = [0, 0];
    yield text.lines;
    if (text.isBroken) throw notUtf8({ file, number: lines + 1 });
  };
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const end = bytes.lastIndexOf(newline);
    if (end >= 0) {
      rest.push(bytes.subarray(0, end));
      yield* decoded();
    }
    rest.push(bytes.subarray(end + 1));
    restBytes += bytes.length - end - 1;
    if (restBytes > mostRowBytes) throw tooLarge({ file, number: lines + 1 });
  }
  if (restBytes > 0) yield* decoded();
}

interface Lines {
  readonly lines: readonly string[];
  /** The line after these is not UTF-8. */
  readonly isBroken: boolean;
}

/** `isFirst`: a byte order mark may come before the text. */
function linesOf(bytes: Buffer, isFirst: boolean): Lines {
  const text = isFirst && bytes.toString('latin1', 0, 3) === '\xef\xbb\xbf' ? bytes.subarray(3) : bytes;
  if (isUtf8(text)) return { lines: text.toString('utf8').split('\n'), isBroken: false };
  const lines: string[] = [];
  for (let start = 0; ; ) {
    const found = text.indexOf(newline, start);
    const line = text.subarray(start, found < 0 ? text.length : found);
    if (!isUtf8(line)) return { lines, isBroken: true };
    lines.push(line.toString('utf8'));
    start = found + 1;
  }
}

/** What is said of a row whose bytes are no UTF-8. */
export const notUtf8 = (place: Pick<RawRow, 'file' | 'number'>) =>
  rowError(
    place,
    'the row is not UTF-8',
    undefined,
    'if the file is Latin-1: iconv -f LATIN1 -t UTF-8 rows.jsonl > utf8.jsonl',
  );

/** What is said of a row that fits no string. */
export const tooLarge = (place: Pick<RawRow, 'file' | 'number'>) =>
  rowError(
    place,
    `the row goes on for more than ${mostRowBytes / 1024 / 1024} MiB; no model can take it`,
    undefined,
    'leave the row out, or write one row a line',
  );
