/**
 * Rows from the levels of their columns, as Dremel's paper and the Parquet format describe them: a definition level
 * says how much of a value's path is there, a repetition level which list of the path goes on. Structs and lists of any
 * depth are put together here, row by row; a field with anything else in it by the library, for some rows at once.
 */
import type { DecodedArray, SchemaTree } from 'hyparquet';
import { assembleLists, assembleNested } from 'hyparquet/src/assemble.js';
import { DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { getTreePath, isListLike } from 'hyparquet/src/schema.js';
import { at } from '../../../core/at.ts';
import type { Entries } from './column-reader.ts';
import { jsonValue } from './plain-value.ts';
import { notText } from './text.ts';

/** The entries of some rows of one column, and how far they are read. */
export class ColumnCursor {
  readonly #definition: ArrayLike<number>;
  readonly #repetition: ArrayLike<number>;
  readonly #values: ArrayLike<unknown>;
  readonly #count: number;
  #entry = 0;
  #value = 0;

  constructor({ definition, repetition, values, count }: Entries) {
    [this.#definition, this.#repetition, this.#values, this.#count] = [definition, repetition, values, count];
  }

  /** Is the path of the next entry there up to this level? */
  isDefined(level: number): boolean {
    return this.#definition.length === 0 || (this.#definition[this.#entry] ?? 0) >= level;
  }

  /** Does the next entry go on with a list of this level? */
  repeats(level: number): boolean {
    return this.#entry < this.#count && (this.#repetition[this.#entry] ?? 0) >= level;
  }

  /** The value of the next entry, null where it is missing. */
  next(level: number): unknown {
    const isThere = this.isDefined(level);
    this.skip();
    if (!isThere) return null;
    const value = this.#values[this.#value++];
    if (value === notText) throw new Error('text that is not UTF-8');
    return value;
  }

  /** Passes over an entry. Throws when the column has fewer rows than the file promises. */
  skip(): void {
    if (this.#entry >= this.#count) throw new Error('the file promises this row and does not have it');
    this.#entry++;
  }

  get isAtEnd(): boolean {
    return this.#entry === this.#count && this.#value === this.#values.length;
  }
}

/** Makes the value of a field for the next row. */
export type FieldReader = (cursors: readonly ColumnCursor[]) => unknown;

interface Place {
  /** Levels above this field. */
  readonly definition: number;
  readonly repetition: number;
  /** The field's first column. */
  readonly column: number;
}

/** undefined: the field has something in it that the library puts together. */
export function fieldReader(field: SchemaTree, place: Place): FieldReader | undefined {
  const { repetition_type: type, logical_type: logical } = field.element;
  if (type === 'REPEATED' || logical?.type === 'VARIANT') return undefined;
  const own = { ...place, definition: place.definition + (type === 'OPTIONAL' ? 1 : 0) };
  const read =
    field.children.length === 0
      ? leafReader(own)
      : isListLike(field)
        ? listReader(field, own)
        : structReader(field, own);
  if (read === undefined || type !== 'OPTIONAL' || field.children.length === 0) return read;
  const columns = leavesOf(field);
  return (cursors) =>
    at(cursors, own.column).isDefined(own.definition) ? read(cursors) : missing(cursors, own, columns, null);
}

const leafReader =
  ({ column, definition }: Place): FieldReader =>
  (cursors) =>
    at(cursors, column).next(definition);

function structReader(field: SchemaTree, place: Place): FieldReader | undefined {
  if (field.element.converted_type !== undefined) return undefined;
  let { column } = place;
  const readers: (readonly [string, FieldReader])[] = [];
  for (const child of field.children) {
    const read = fieldReader(child, { ...place, column });
    if (read === undefined) return undefined;
    readers.push([child.element.name, read]);
    column += leavesOf(child);
  }
  return (cursors) => {
    const struct: Record<string, unknown> = {};
    for (const [name, read] of readers) struct[name] = read(cursors);
    return struct;
  };
}

/** A list is a group with one repeated group, which holds the element. */
function listReader(field: SchemaTree, place: Place): FieldReader | undefined {
  const element = field.children[0]?.children[0];
  const [definition, repetition] = [place.definition + 1, place.repetition + 1];
  const read = element && fieldReader(element, { column: place.column, definition, repetition });
  if (read === undefined) return undefined;
  const columns = leavesOf(field);
  const others = Array.from({ length: columns - 1 }, (_, i) => place.column + 1 + i);
  return (cursors) => {
    const first = at(cursors, place.column);
    if (!first.isDefined(definition)) return missing(cursors, { ...place, definition }, columns, []);
    const items: unknown[] = [];
    for (let more = true; more; ) {
      items.push(read(cursors));
      more = first.repeats(repetition);
      for (const other of others) if (at(cursors, other).repeats(repetition) !== more) throw disagree();
    }
    return items;
  };
}

/** Passes over the entry that each column of a field has in the place of a value. */
function missing<T>(cursors: readonly ColumnCursor[], { column, definition }: Place, columns: number, value: T): T {
  for (let i = column; i < column + columns; i++) {
    if (at(cursors, i).isDefined(definition)) throw disagree();
    at(cursors, i).skip();
  }
  return value;
}

const disagree = () => new Error('the columns of a field disagree about its lists');

export const leavesOf = (field: SchemaTree): number =>
  field.children.length === 0 ? 1 : field.children.reduce((sum, child) => sum + leavesOf(child), 0);

/** The values of a field for the rows of `entries`, one of its columns each, put together by the library. */
export function assembledByLibrary(
  root: SchemaTree,
  field: SchemaTree,
  columns: readonly { readonly path: readonly string[]; readonly entries: Entries }[],
): readonly unknown[] {
  const byPath = new Map<string, DecodedArray>();
  for (const { path, entries } of columns) {
    const { definition, repetition, values } = entries;
    const lists = assembleLists(
      [],
      definition as number[],
      repetition as number[],
      values as DecodedArray,
      getTreePath(root, [...path]),
    );
    byPath.set(path.join('.'), lists);
  }
  if (field.children.length > 0) assembleNested(byPath, field, DEFAULT_PARSERS);
  const values = byPath.get(field.element.name) ?? [];
  return Array.from(values as ArrayLike<unknown>, jsonValue);
}
