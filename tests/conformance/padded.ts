/** Converts the reference's padded (bs, T) matrices and ragged lists to the ragged rows of core/rl, and back. */
import { raggedRows, type RaggedRows } from '../../core/rl/ragged.ts';
import type { GoldenCase } from './types.ts';

/** Rows of numbers, flattened; NaN and infinities are strings in the files. */
export function flatten(matrix: unknown): Float64Array {
  return Float64Array.from(matrixRows(matrix).flat(), toNumber);
}

function rowLengths(matrix: unknown): number[] {
  return matrixRows(matrix).map((row) => row.length);
}

/** A padded or ragged matrix as rows, with its mask. Padding stays inside the rows, with mask 0. */
export function maskedRows(mask: unknown): RaggedRows {
  return raggedRows(rowLengths(mask), flatten(mask));
}

export function allRows(matrix: unknown): RaggedRows {
  return raggedRows(rowLengths(matrix));
}

/** Ragged arrays could hide that padded ones differ in shape, when they have equally many elements. */
export function requireSameShape(...matrices: readonly unknown[]): void {
  const shapes = matrices.map((matrix) => rowLengths(matrix).join());
  if (new Set(shapes).size > 1) throw new Error(`shapes differ: ${shapes.join(' | ')}`);
}

/** Values per token as a matrix again. */
export function unflatten(values_T: ArrayLike<number>, rows: RaggedRows): number[][] {
  const matrix: number[][] = [];
  for (let s = 0; s + 1 < rows.offsets_S1.length; s++) {
    matrix.push(Array.from(values_T).slice(rows.offsets_S1[s], rows.offsets_S1[s + 1]));
  }
  return matrix;
}

export function numbers(list: unknown): number[] {
  if (!Array.isArray(list)) throw new Error('expected a list of numbers');
  return list.map(toNumber);
}

/** Named access to the parameters and inputs of a case. */
export function fields(values: Readonly<Record<string, unknown>> | undefined) {
  const get = (name: string): unknown => values?.[name] ?? undefined;
  return {
    get,
    has: (name: string): boolean => get(name) !== undefined,
    number: (name: string): number => toNumber(get(name)),
    optionalNumber: (name: string): number | undefined => (get(name) === undefined ? undefined : toNumber(get(name))),
    string: (name: string): string => String(get(name)),
    flag: (name: string): boolean => get(name) === 1 || get(name) === true,
  };
}

export function inputsOf(testCase: GoldenCase) {
  return fields(testCase.inputs);
}

export function paramsOf(testCase: GoldenCase) {
  return fields(testCase.params);
}

function matrixRows(matrix: unknown): unknown[][] {
  if (!Array.isArray(matrix) || !matrix.every(Array.isArray)) throw new Error('expected a list of lists');
  return matrix as unknown[][];
}

function toNumber(value: unknown): number {
  if (typeof value === 'number') return value;
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value);
  throw new Error(`expected a number, got ${JSON.stringify(value)}`);
}
