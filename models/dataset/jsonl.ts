/** JSON Lines, streamed: one row a line, numbered from 1; empty lines are passed over but counted. */
import { createReadStream } from 'node:fs';
import { InvalidInputError } from '../../core/errors.ts';
import { isLossy, parseJson } from '../json.ts';
import { type RawRow, rowError } from './raw.ts';

/** Throws InvalidInputError with file and row for a line that is not JSON, or not UTF-8. */
export async function* readJsonl(file: string): AsyncGenerator<RawRow> {
  let number = 0;
  for await (const line of readLines(file)) {
    number++;
    if (line.trim() !== '') yield parseLine(line, file, number);
  }
}

function parseLine(line: string, file: string, number: number): RawRow {
  const place = { file, number };
  try {
    const exact = parseJson(line);
    return { ...place, exact, plain: isLossy(line) ? (JSON.parse(line) as unknown) : exact };
  } catch (cause) {
    throw rowError(
      place,
      `expected a JSON object on one line: ${cause instanceof Error ? cause.message : String(cause)}`,
      cause,
    );
  }
}

async function* readLines(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  let lines = 0;
  try {
    for await (const chunk of createReadStream(file)) {
      const parts = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        lines++;
        yield part;
      }
    }
    rest += decoder.decode();
  } catch (cause) {
    if (cause instanceof TypeError)
      throw rowError({ file, number: lines + 1 }, 'from here on the file is not UTF-8', cause);
    throw (cause as NodeJS.ErrnoException).code === 'ENOENT'
      ? new InvalidInputError(`${file}: there is no such file`, { where: file, cause })
      : cause;
  }
  if (rest !== '') yield rest;
}
