/**
 * Rows of a JSON array, and of JSON objects over many lines: cut from the bytes one after the other, so that only one
 * row is in memory.
 */
import { isUtf8 } from 'node:buffer';
import { mostRowBytes, notUtf8, tooLarge } from './jsonl.ts';
import { type RawRow, rowError } from './raw.ts';
import { parseRow } from './row-text.ts';

/**
 * `isArray`: the rows are the items of one array. Rows are numbered from 1. Throws InvalidInputError with file and row.
 */
export async function* readJsonValues(
  chunks: AsyncIterable<Uint8Array>,
  file: string,
  isArray: boolean,
): AsyncGenerator<RawRow> {
  const splitter = new ValueSplitter(isArray);
  let number = 0;
  for await (const chunk of chunks) {
    for (const bytes of splitter.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))) {
      number++;
      yield rowOf(bytes, { file, number });
    }
    if (splitter.waiting > mostRowBytes) throw tooLarge({ file, number: number + 1 });
  }
  const left = splitter.end();
  if (left !== undefined) throw rowError({ file, number: number + 1 }, left);
}

function rowOf(bytes: Buffer, place: Pick<RawRow, 'file' | 'number'>): RawRow {
  if (!isUtf8(bytes)) throw notUtf8(place);
  const text = bytes.toString('utf8');
  return parseRow(place.number === 1 ? text.replace(/^\ufeff/, '') : text, place, 'expected a JSON object');
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const opening: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const closing: ReadonlySet<number> = new Set([0x5d, 0x7d]);
const blank: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf]);

/**
 * Cuts values from bytes that come in pieces. It knows strings and brackets; what is wrong in a value, its parser says.
 */
class ValueSplitter {
  /** Depth at which rows lie. */
  readonly #base: number;
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  #isOver = false;
  readonly #parts: Buffer[] = [];
  /** Bytes of the row that has begun. */
  waiting = 0;

  constructor(isArray: boolean) {
    this.#base = isArray ? 1 : 0;
  }

  *push(chunk: Buffer): Generator<Buffer> {
    let start = 0;
    for (let i = 0; i < chunk.length && !this.#isOver; i++) {
      const byte = chunk[i] as number;
      if (this.#inString) {
        this.#passString(byte);
        continue;
      }
      if (byte === quote) this.#inString = true;
      else if (opening.has(byte)) {
        if (this.#depth++ < this.#base) start = i + 1;
      } else if (closing.has(byte)) this.#depth--;
      else if (byte !== comma || this.#depth !== this.#base || this.#base === 0) continue;
      const isEnd = this.#isEnd(byte);
      if (!isEnd) continue;
      const isRowsOwn = this.#base === 0;
      yield* this.#row(chunk.subarray(start, isRowsOwn ? i + 1 : i), byte !== comma);
      start = i + 1;
    }
    const rest = chunk.subarray(start);
    if (!this.#isOver || !isBlank(rest)) this.#keep(rest);
  }

  /** What is wrong with what is left, or undefined. */
  end(): string | undefined {
    const rest = Buffer.concat(this.#parts);
    if (this.#base === 1 && !this.#isOver) return 'the JSON array ends before its closing bracket';
    return isBlank(rest)
      ? undefined
      : this.#isOver
        ? 'there is text behind the JSON array'
        : 'the JSON object ends too early';
  }

  #passString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === backslash) this.#isEscaped = true;
    else if (byte === quote) this.#inString = false;
  }

  /** Does this byte, a bracket or a comma, end a row? */
  #isEnd(byte: number): boolean {
    if (this.#base === 0) return closing.has(byte) && this.#depth === 0;
    return byte === comma || (closing.has(byte) && this.#depth === 0);
  }

  /** `isLast`: an empty array, and a comma before its end, have no row there. */
  *#row(part: Buffer, isLast: boolean): Generator<Buffer> {
    this.#keep(part);
    const bytes = Buffer.concat(this.#parts);
    [this.#parts.length, this.waiting] = [0, 0];
    if (this.#base === 1 && isLast) {
      this.#isOver = true;
      if (isBlank(bytes)) return;
    }
    yield bytes;
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#parts.push(part);
    this.waiting += part.length;
  }
}

const isBlank = (bytes: Buffer): boolean => bytes.every((byte) => blank.has(byte));
