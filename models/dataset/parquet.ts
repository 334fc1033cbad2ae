/**
 * Parquet files in batches of rows: nested lists and structs; snappy, gzip, zstd, brotli, lz4. The reader decodes a
 * nested column of a whole row group for every batch of it, so batches are large and end with their group.
 */
import { type FileHandle, open } from 'node:fs/promises';
import {
  type AsyncBuffer,
  type FileMetaData,
  type SchemaTree,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { InvalidInputError } from '../../core/errors.ts';
import { type RawRow, rowError } from './raw.ts';

/** A batch has about so many bytes, and never fewer rows than these. */
const batchBytes = 8 * 1024 * 1024;
const fewestRows = 1024;

/** Throws InvalidInputError that names the file, and the row from which on it cannot be read. */
export async function* readParquet(path: string): AsyncGenerator<RawRow> {
  const handle = await openFile(path);
  try {
    const file = await asyncBuffer(handle);
    const metadata = await readMetadata(file, path);
    for (const [start, end] of batchesOf(metadata)) {
      const rows = await readBatch(file, metadata, start, end, path);
      for (const [i, row] of rows.entries()) {
        yield { file: path, number: start + i + 1, exact: normalize(row, true), plain: normalize(row, false) };
      }
    }
  } finally {
    await handle.close();
  }
}

/** First row of each batch, and the row after its last. */
function* batchesOf({ row_groups: groups }: FileMetaData): Generator<readonly [number, number]> {
  let start = 0;
  for (const { num_rows: rows, total_byte_size: bytes } of groups) {
    const groupEnd = start + Number(rows);
    const fitting = Math.floor((batchBytes * Number(rows)) / Math.max(1, Number(bytes)));
    for (const size = Math.max(fewestRows, fitting); start < groupEnd; start += size)
      yield [start, Math.min(start + size, groupEnd)];
    start = groupEnd;
  }
}

async function readMetadata(file: AsyncBuffer, path: string): Promise<FileMetaData> {
  try {
    const metadata = await parquetMetadataAsync(file);
    checkMetadata(metadata);
    return metadata;
  } catch (cause) {
    throw new InvalidInputError(
      `${path}: not a Parquet file: ${cause instanceof Error ? cause.message : String(cause)}`,
      { where: path, cause },
    );
  }
}

/**
 * Row groups must hold exactly the schema's columns, and together the promised rows. The reader starts every column
 * that a footer lists but waits only for those it knows, so a footer that disagrees with itself would fail where nobody
 * listens.
 */
function checkMetadata(metadata: FileMetaData): void {
  const leaves = leafPaths(parquetSchema(metadata)).join('\n');
  let rows = 0n;
  for (const [i, group] of metadata.row_groups.entries()) {
    const columns = group.columns.map((column) => column.meta_data?.path_in_schema.join('.') ?? '?').join('\n');
    if (columns !== leaves) throw new Error(`row group ${i} does not hold the columns of the schema`);
    rows += group.num_rows;
  }
  if (rows !== metadata.num_rows)
    throw new Error(`the file promises ${metadata.num_rows} rows, its row groups have ${rows}`);
}

function leafPaths(tree: SchemaTree): string[] {
  return tree.children.length === 0 ? [tree.path.join('.')] : tree.children.flatMap(leafPaths);
}

async function readBatch(
  file: AsyncBuffer,
  metadata: FileMetaData,
  rowStart: number,
  rowEnd: number,
  path: string,
): Promise<readonly Record<string, unknown>[]> {
  let rows: Record<string, unknown>[];
  try {
    rows = await parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors });
  } catch (cause) {
    throw rowError(
      { file: path, number: rowStart + 1 },
      `cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      cause,
    );
  }
  if (rows.length !== rowEnd - rowStart)
    throw rowError(
      { file: path, number: rowStart + rows.length + 1 },
      'the file promises this row and does not have it',
    );
  return rows;
}

/** Int64 comes as bigint and stays one where `exact` and too large for a number; dates become ISO text. */
function normalize(value: unknown, exact: boolean): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) || !exact ? Number(value) : value;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) return value.map((item) => normalize(item, exact));
  if (typeof value !== 'object' || value === null) return value ?? null;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, normalize(item, exact)]));
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (cause) {
    throw new InvalidInputError(`${path}: there is no such file`, { where: path, cause });
  }
}

async function asyncBuffer(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    slice: async (start, end = size) => {
      const bytes = new Uint8Array(Math.max(0, end - start));
      let at = 0;
      while (at < bytes.length) {
        const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
        if (bytesRead === 0) throw new Error(`the file ends at byte ${start + at}`);
        at += bytesRead;
      }
      return bytes.buffer;
    },
  };
}
