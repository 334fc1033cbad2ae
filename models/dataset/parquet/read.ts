/**
 * Parquet files in batches of rows: nested lists and structs; snappy, gzip, zstd, brotli, lz4. Columns are read page by
 * page, so that memory does not grow with a row group: pyarrow puts a million rows into one. Why this reader:
 * docs/decisions/0034-parquet-by-pages.md.
 */
import type { FileHandle } from 'node:fs/promises';
import { type AsyncBuffer, type FileMetaData, type SchemaTree, parquetMetadataAsync, parquetSchema } from 'hyparquet';
import { InvalidInputError } from '../../../core/errors.ts';
import { openFile } from '../open-file.ts';
import { type RawRow, type RowPlace, rowError } from '../raw.ts';
import { type ParquetRow, readGroup, usualBatchBytes } from './row-group.ts';

/** Throws InvalidInputError that names the file, and the row that cannot be read. */
export async function* readParquet(path: string, batchBytes = usualBatchBytes): AsyncGenerator<RawRow> {
  const handle = await openFile(path);
  try {
    const metadata = await readMetadata(handle, path);
    let number = 0;
    for await (const rows of batchesOf(handle, metadata, batchBytes, () => ({ file: path, number: number + 1 })))
      for (const { exact, plain } of rows) yield { file: path, number: ++number, exact, plain };
  } finally {
    await handle.close();
  }
}

/** `next`: the row after those that were handed over, for an error. */
async function* batchesOf(
  handle: FileHandle,
  metadata: FileMetaData,
  batchBytes: number,
  next: () => RowPlace,
): AsyncGenerator<readonly ParquetRow[]> {
  const root = parquetSchema(metadata);
  try {
    for (const group of metadata.row_groups) yield* readGroup(handle, root, group, batchBytes);
  } catch (cause) {
    throw rowError(next(), `cannot be read: ${reasonOf(cause)}`, cause);
  }
}

async function readMetadata(handle: FileHandle, path: string): Promise<FileMetaData> {
  await refuseCut(handle, path);
  try {
    const metadata = await parquetMetadataAsync(await asyncBuffer(handle));
    checkMetadata(metadata);
    return metadata;
  } catch (cause) {
    throw new InvalidInputError(`${path}: not a Parquet file: ${reasonOf(cause)}`, { where: path, cause });
  }
}

/** A Parquet file begins and ends with these letters; what its columns are stands before the last ones. */
const magic = 'PAR1';

/** Throws InvalidInputError for a file whose end is missing, as a download that was cut leaves it. */
async function refuseCut(handle: FileHandle, path: string): Promise<void> {
  const { size } = await handle.stat();
  const end = Buffer.alloc(8);
  if (size >= 12) await handle.read(end, 0, 8, size - 8);
  const footer = end.readUInt32LE(0);
  if (end.toString('latin1', 4) === magic && footer + 12 <= size) return;
  throw new InvalidInputError(
    `${path}: the end of the Parquet file is missing: expected the description of its columns, found the last of ${size} bytes`,
    { where: path, hint: 'get the file again: the download or the copy was cut' },
  );
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** Row groups must hold exactly the schema's columns, and together the promised rows. */
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
