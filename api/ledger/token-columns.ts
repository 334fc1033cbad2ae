/** Compares the numbers that came with each token from its sampler: the tensors `token.<name>`. */
import { at } from './at.ts';
import { DamagedTensors, floatBits, integers } from './tensors.ts';
import type { Tensors } from './tensors.ts';

export interface Column {
  readonly dtype: string;
  /** Numbers of one token. */
  readonly width: number;
  /** [tokens][width], floats as bits. */
  readonly bits: Int32Array;
}

export type Columns = ReadonlyMap<string, Column>;

const prefix = 'token.';

/** The columns of an object with so many response tokens. */
export function columnsIn(tensors: Tensors, tokens: number): Columns {
  const found = new Map<string, Column>();
  for (const [name, { dtype, shape }] of tensors.entries) {
    if (!name.startsWith(prefix)) continue;
    const [rows, width = 0] = shape;
    if (shape.length !== 2 || rows !== tokens || width < 1)
      throw new DamagedTensors(`tensor ${name}: shape [${shape.join(', ')}] for ${tokens} response tokens`);
    const bits = dtype === 'F32' ? floatBits(tensors, name) : integers(tensors, name);
    found.set(name.slice(prefix.length), { dtype, width, bits });
  }
  return found;
}

/** The columns of tokens [start, end). */
export const columnsOf = (columns: Columns, start: number, end: number): Columns =>
  new Map(
    [...columns].map(([name, { dtype, width, bits }]) => [
      name,
      { dtype, width, bits: bits.subarray(start * width, end * width) },
    ]),
  );

/**
 * A short text about what differs between a sample in a batch and its source. Samples of one batch may come from
 * samplers with other columns: where a source has none, the batch has −1, or NaN.
 */
export function differenceOfColumns(found: Columns, source: Columns): string | undefined {
  for (const name of source.keys()) if (!found.has(name)) return `no column ${name} of its tokens`;
  for (const [name, column] of found) {
    const wanted = source.get(name);
    if (wanted === undefined) {
      if (!column.bits.every((bits) => isUnknown(column, bits)))
        return `a column ${name}, which its source does not have`;
    } else if (!same(column, wanted)) return `another column ${name} of its tokens`;
  }
  return undefined;
}

const same = (found: Column, wanted: Column): boolean =>
  found.dtype === wanted.dtype &&
  found.width === wanted.width &&
  found.bits.length === wanted.bits.length &&
  found.bits.every(
    (bits, i) => bits === wanted.bits[i] || (isNaNOf(found, bits) && isNaNOf(wanted, at(wanted.bits, i))),
  );

const isUnknown = (column: Column, bits: number): boolean =>
  column.dtype === 'F32' ? isNaNOf(column, bits) : bits === -1;

/** A NaN may be another one after it was copied. */
const isNaNOf = ({ dtype }: Column, bits: number): boolean => dtype === 'F32' && (bits & 0x7fffffff) > 0x7f800000;
