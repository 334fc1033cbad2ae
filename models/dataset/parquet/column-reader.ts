/**
 * A column of a row group as levels and values, a number of rows at a time. Pages of a column end where their writer
 * liked, in the middle of a row too, and each column has its own.
 */
import type { FileHandle } from 'node:fs/promises';
import type { ColumnMetaData, DecodedArray, SchemaTree } from 'hyparquet';
import { convert, convertWithDictionary, DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { decompressPage, readDataPage, readDataPageV2 } from 'hyparquet/src/datapage.js';
import { readPlain } from 'hyparquet/src/plain.js';
import { at } from '../../../core/at.ts';
import { compressors } from './compressors.ts';
import { type RawPage, PageSource } from './page-source.ts';
import { plainJson } from './plain-value.ts';
import { textParser } from './text.ts';

type ColumnDecoder = Parameters<typeof convert>[1];

/** Entries of a column: one for each value, and one for each place where a list or a value is missing. */
export interface Entries {
  /** Empty: every entry has a value. */
  readonly definition: ArrayLike<number>;
  /** Empty: every entry begins a row. */
  readonly repetition: ArrayLike<number>;
  readonly values: ArrayLike<unknown>;
  readonly count: number;
}

export class ColumnReader {
  /** Path of the field in the file's schema, without the root. */
  readonly path: readonly string[];
  /** Has a page had integers that JSON.parse would round? */
  hasBigIntegers = false;
  readonly #source: PageSource;
  readonly #decoder: ColumnDecoder;
  readonly #entriesInAll: number;
  readonly #maxDefinition: number;
  #dictionary: DecodedArray | undefined;
  #page: Entries = none;
  /** Entries and values of the page that were taken. */
  #entry = 0;
  #value = 0;

  constructor(file: FileHandle, column: ColumnMetaData, schemaPath: SchemaTree[]) {
    this.path = column.path_in_schema;
    this.#source = new PageSource(file, column);
    this.#entriesInAll = Number(column.num_values);
    this.#maxDefinition = schemaPath.slice(1).filter(({ element }) => element.repetition_type !== 'REQUIRED').length;
    const { element } = at(schemaPath, -1);
    const isText = element.converted_type === 'UTF8' || element.logical_type?.type === 'STRING';
    this.#decoder = {
      pathInSchema: column.path_in_schema,
      type: column.type,
      codec: column.codec,
      element,
      schemaPath,
      compressors,
      parsers: { ...DEFAULT_PARSERS, stringFromBytes: textParser(isText) },
    };
  }

  /** The entries of the next rows; fewer at the end of the row group. */
  async take(rows: number): Promise<Entries> {
    const parts: Entries[] = [];
    for (let missing = rows; ; ) {
      const { part, begun } = this.#takeFromPage(missing);
      if (part.count > 0) parts.push(part);
      missing -= begun;
      // The last row may go on in the next page.
      if (this.#entry < this.#page.count || !(await this.#nextPage())) return joined(parts, this.#maxDefinition);
    }
  }

  /** Entries up to where the row after `rows` more ones begins, and how many rows they begin. */
  #takeFromPage(rows: number): { readonly part: Entries; readonly begun: number } {
    const { definition, repetition, values, count } = this.#page;
    const from = this.#entry;
    let [entry, begun] = [from, 0];
    if (repetition.length === 0) {
      begun = Math.min(rows, count - from);
      entry = from + begun;
    } else
      for (; entry < count; entry++) {
        if (repetition[entry] !== 0) continue;
        if (begun === rows) break;
        begun++;
      }
    const valuesTaken = definition.length === 0 ? entry - from : this.#valuesIn(definition, from, entry);
    const part = {
      definition: definition.length === 0 ? definition : slice(definition, from, entry),
      repetition: repetition.length === 0 ? repetition : slice(repetition, from, entry),
      values: slice(values, this.#value, this.#value + valuesTaken),
      count: entry - from,
    };
    [this.#entry, this.#value] = [entry, this.#value + valuesTaken];
    return { part, begun };
  }

  #valuesIn(definition: ArrayLike<number>, from: number, to: number): number {
    let values = 0;
    for (let entry = from; entry < to; entry++) if (definition[entry] === this.#maxDefinition) values++;
    return values;
  }

  async #nextPage(): Promise<boolean> {
    for (let raw = await this.#source.next(); raw !== undefined; raw = await this.#source.next()) {
      if (raw.header.type === 'DICTIONARY_PAGE') {
        this.#dictionary = this.#readDictionary(raw);
        continue;
      }
      [this.#page, this.#entry, this.#value] = [this.#readPage(raw), 0, 0];
      if (this.#page.count > 0) return true;
    }
    [this.#page, this.#entry, this.#value] = [none, 0, 0];
    return false;
  }

  #readDictionary({ header, compressed }: RawPage): DecodedArray {
    const { dictionary_page_header: dictionary, uncompressed_page_size: size } = header;
    if (dictionary === undefined) throw new Error('a dictionary page has no header of its own');
    const { type, codec, element } = this.#decoder;
    const bytes = decompressPage(compressed, size, codec, compressors);
    const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
    const read = readPlain(reader, type, dictionary.num_values, element.type_length);
    return this.#plain(convert(read, this.#decoder));
  }

  #readPage({ header, compressed }: RawPage): Entries {
    const { data_page_header: v1, data_page_header_v2: v2 } = header;
    const own = header.type === 'DATA_PAGE' ? v1 : header.type === 'DATA_PAGE_V2' ? v2 : undefined;
    if (own === undefined) throw new Error(`a page of type ${header.type} was not expected`);
    const count = this.#checkedCount(own.num_values);
    const size = header.uncompressed_page_size;
    const page =
      v1 !== undefined && own === v1
        ? readDataPage(decompressPage(compressed, size, this.#decoder.codec, compressors), v1, this.#decoder)
        : readDataPageV2(compressed, header, this.#decoder);
    const isCoded = this.#dictionary !== undefined && own.encoding.endsWith('_DICTIONARY');
    const values = convertWithDictionary(page.dataPage, this.#dictionary, own.encoding, this.#decoder);
    return {
      definition: page.definitionLevels ?? [],
      repetition: page.repetitionLevels,
      values: isCoded ? values : this.#plain(values),
      count,
    };
  }

  #plain(values: DecodedArray): DecodedArray {
    const plain = plainJson(values);
    if (this.#decoder.type === 'INT64')
      this.hasBigIntegers ||= (plain as unknown[]).some((value) => typeof value === 'bigint');
    return plain;
  }

  /** A damaged header would have arrays of any size made. */
  #checkedCount(entries: number): number {
    if (entries >= 0 && entries <= this.#entriesInAll) return entries;
    throw new Error(`a page has ${entries} values, its whole column ${this.#entriesInAll}`);
  }
}

const none: Entries = { definition: [], repetition: [], values: [], count: 0 };

type Sliceable = ArrayLike<unknown> & { slice(from: number, to: number): ArrayLike<never> };

const slice = <T>(items: ArrayLike<T>, from: number, to: number): ArrayLike<T> =>
  from === 0 && to === items.length ? items : (items as unknown as Sliceable).slice(from, to);

function joined(parts: readonly Entries[], maxDefinition: number): Entries {
  if (parts.length < 2) return parts[0] ?? none;
  const isAll = parts.every(({ definition }) => definition.length === 0);
  const definitionOf = ({ definition, count }: Entries) =>
    definition.length === 0 ? Array<number>(count).fill(maxDefinition) : Array.from(definition);
  return {
    definition: isAll ? [] : parts.flatMap(definitionOf),
    repetition: parts.flatMap(({ repetition }) => Array.from(repetition)),
    values: parts.flatMap(({ values }) => Array.from(values)),
    count: parts.reduce((sum, { count }) => sum + count, 0),
  };
}
