/** The rows of a file as they are, in whatever of the known formats it is: its content decides, not its name. */
import { type Readable, pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { InvalidInputError } from '../../core/errors.ts';
import { type FileKind, type RowsFormat, fileKind, headBytes, quoted } from '../file-kind.ts';
import { readJsonl } from './jsonl.ts';
import { readJsonValues } from './json-values.ts';
import { openFile } from './open-file.ts';
import { readParquet } from './parquet/read.ts';
import type { RawRow } from './raw.ts';

type TextFormat = Exclude<RowsFormat, 'parquet' | 'gzip'>;

/**
 * Rows of Parquet, JSONL, a JSON array, or JSON objects over many lines; of the latter three also compressed by gzip.
 * Throws InvalidInputError that names the file and what it is, or with the row that cannot be read.
 */
export async function rawRows(file: string): Promise<AsyncGenerator<RawRow>> {
  const format = formatOf(file, fileKind(await headOf(file)));
  if (format === 'parquet') return readParquet(file);
  if (format === 'gzip') return readGzip(file);
  return readText(bytesOf(file), file, format);
}

async function headOf(file: string): Promise<Uint8Array> {
  const handle = await openFile(file);
  try {
    const { buffer, bytesRead } = await handle.read(new Uint8Array(headBytes), 0, headBytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function formatOf(file: string, kind: FileKind, inside = ''): RowsFormat {
  if (kind.type === 'rows') return kind.format;
  if (kind.type === 'empty')
    throw new InvalidInputError(`${file}: there are no rows: ${inside}the file is empty`, { where: file });
  throw new InvalidInputError(`${file}: expected rows of JSON or Parquet; ${inside}this is ${kind.name}`, {
    where: file,
    hint: inside === '' ? kind.advice(file) : adviceUnpacked(file, kind.advice),
  });
}

/** A command that reads the file reads what is unpacked beside it first. */
function adviceUnpacked(file: string, adviceFor: (file: string) => string): string {
  const unpacked = file.endsWith('.gz') ? file.slice(0, -'.gz'.length) : `${file}.unpacked`;
  const advice = adviceFor(unpacked);
  const isAboutFile = advice.includes(quoted(unpacked));
  return isAboutFile ? `gunzip -c ${quoted(file)} > ${quoted(unpacked)} && ${advice}` : advice;
}

async function* readText(chunks: AsyncIterable<Uint8Array>, file: string, format: TextFormat): AsyncGenerator<RawRow> {
  const { head, all } = await peeked(chunks);
  const isSpread = format === 'json lines' && isOverManyLines(head);
  yield* format === 'json array' || isSpread ? readJsonValues(all, file, !isSpread) : readJsonl(all, file);
}

/** Does the first row go on in the second line? */
function isOverManyLines(head: Uint8Array): boolean {
  const [first = '', second] = Buffer.from(head).toString('utf8').trimStart().split('\n', 2);
  return second !== undefined && first.startsWith('{') && /[{[,:]$/.test(first.trimEnd());
}

async function* readGzip(file: string): AsyncGenerator<RawRow> {
  const packed = bytesOf(file);
  const unpacked = createGunzip({ chunkSize: headBytes });
  pipeline(packed, unpacked, () => {}); // an error is thrown where `unpacked` is read
  let rows = 0;
  try {
    const { head, all } = await peeked(unpacked as AsyncIterable<Uint8Array>);
    const format = formatOf(file, fileKind(head), 'unpacked, ');
    if (format === 'parquet' || format === 'gzip')
      throw new InvalidInputError(
        `${file}: a ${format === 'gzip' ? 'gzip' : 'Parquet'} file inside gzip cannot be read as it is`,
        {
          where: file,
          hint: `gunzip -c ${quoted(file)} > ${quoted(file.replace(/\.gz$/, ''))}.unpacked`,
        },
      );
    for await (const row of readText(all, file, format)) {
      rows++;
      yield row;
    }
  } catch (cause) {
    if (cause instanceof InvalidInputError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidInputError(`${file}: its gzip is damaged after ${rows} rows: ${reason}`, { where: file, cause });
  }
}

/** The first bytes, and all of them. */
async function peeked(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ readonly head: Uint8Array; readonly all: AsyncIterable<Uint8Array> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first = await iterator.next();
  const head = first.done === true ? new Uint8Array(0) : first.value;
  const all = async function* () {
    try {
      yield head;
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value;
    } finally {
      await iterator.return?.();
    }
  };
  return { head, all: all() };
}

/** Opened as late as it is read, and closed with its reader. */
async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  const handle = await openFile(file);
  const stream: Readable = handle.createReadStream({ highWaterMark: headBytes });
  yield* stream as AsyncIterable<Uint8Array>;
}
