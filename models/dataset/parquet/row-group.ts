/** The rows of a row group, a batch at a time. */
import type { FileHandle } from 'node:fs/promises';
import type { RowGroup, SchemaTree } from 'hyparquet';
import { getTreePath } from 'hyparquet/src/schema.js';
import { at } from '../../../core/at.ts';
import { assembledByLibrary, ColumnCursor, fieldReader, leavesOf } from './assemble.ts';
import type { FieldReader } from './assemble.ts';
import { type Entries, ColumnReader } from './column-reader.ts';
import { hasBigInteger, rounded } from './plain-value.ts';

/** A batch has about so many bytes, and at most so many rows. */
export const usualBatchBytes = 1024 * 1024;
const mostRows = 4096;

/** A row of a file as RawRow has it. */
export interface ParquetRow {
  readonly exact: unknown;
  readonly plain: unknown;
}

interface Field {
  readonly tree: SchemaTree;
  readonly firstColumn: number;
  /** undefined: the library puts the field together. */
  readonly read: FieldReader | undefined;
}

/** Throws where a row cannot be read, after the rows before it. */
export async function* readGroup(
  file: FileHandle,
  root: SchemaTree,
  group: RowGroup,
  batchBytes: number,
): AsyncGenerator<readonly ParquetRow[]> {
  const columns = group.columns.map((column) => columnOf(file, root, column));
  const fields = fieldsOf(root);
  const total = Number(group.num_rows);
  const size = Math.floor((batchBytes * total) / Math.max(1, Number(group.total_byte_size)));
  const batch = Math.min(mostRows, Math.max(1, size));
  for (let done = 0; done < total; done += batch) {
    const count = Math.min(batch, total - done);
    const entries: Entries[] = [];
    for (const column of columns) entries.push(await column.take(count));
    const mayBeBig = columns.some((column) => column.hasBigIntegers) || fields.some(({ read }) => read === undefined);
    const { rows, failure } = rowsOf(root, fields, columns, entries, count, mayBeBig);
    yield rows;
    if (failure !== undefined) throw failure.cause;
  }
}

function columnOf(file: FileHandle, root: SchemaTree, column: RowGroup['columns'][number]): ColumnReader {
  if (column.file_path !== undefined) throw new Error('a column in another file is not supported');
  if (column.meta_data === undefined) throw new Error('a column has no metadata');
  return new ColumnReader(file, column.meta_data, getTreePath(root, column.meta_data.path_in_schema));
}

function fieldsOf(root: SchemaTree): readonly Field[] {
  let column = 0;
  return root.children.map((tree) => {
    const firstColumn = column;
    column += leavesOf(tree);
    return { tree, firstColumn, read: fieldReader(tree, { column: firstColumn, definition: 0, repetition: 0 }) };
  });
}

interface Batch {
  readonly rows: readonly ParquetRow[];
  /** Why the row after these cannot be read. */
  readonly failure: { readonly cause: unknown } | undefined;
}

function rowsOf(
  root: SchemaTree,
  fields: readonly Field[],
  columns: readonly ColumnReader[],
  entries: readonly Entries[],
  count: number,
  mayBeBig: boolean,
): Batch {
  const cursors = entries.map((own) => new ColumnCursor(own));
  const rows: ParquetRow[] = [];
  try {
    const readers = fields.map(
      (field) => [field.tree.element.name, readerOf(root, field, columns, entries, count)] as const,
    );
    for (let i = 0; i < count; i++) {
      const exact: Record<string, unknown> = {};
      for (const [name, read] of readers) exact[name] = read(cursors);
      rows.push({ exact, plain: mayBeBig && hasBigInteger(exact) ? rounded(exact) : exact });
    }
    const isRead = fields.every(
      ({ read, firstColumn, tree }) =>
        read === undefined ||
        cursors.slice(firstColumn, firstColumn + leavesOf(tree)).every((cursor) => cursor.isAtEnd),
    );
    if (!isRead) throw new Error('its columns have values that belong to no row');
    return { rows, failure: undefined };
  } catch (cause) {
    return { rows, failure: { cause } };
  }
}

function readerOf(
  root: SchemaTree,
  { read, tree, firstColumn }: Field,
  columns: readonly ColumnReader[],
  entries: readonly Entries[],
  count: number,
): FieldReader {
  if (read !== undefined) return read;
  const own = columns.slice(firstColumn, firstColumn + leavesOf(tree));
  const parts = own.map(({ path }, i) => ({ path, entries: at(entries, firstColumn + i) }));
  const values = assembledByLibrary(root, tree, parts);
  if (values.length !== count) throw new Error('the file promises this row and does not have it');
  let next = 0;
  return () => values[next++];
}
