/**
 * JSON as Python's `json.loads` reads it, and Python's equality of the results. It differs from `JSON.parse`: integers
 * are exact, NaN and Infinity are numbers, and 3 = 3.0 and 1 = true.
 */

import { readJson } from '../core/json-reader.ts';
import type { JsonValue } from '../core/json-reader.ts';

/** Integers are bigint, other numbers are number, objects are Map. */
export type PythonValue = JsonValue<PythonPart>;
export type PythonDict = ReadonlyMap<string, PythonValue>;
type PythonPart = bigint | number | PythonDict;

/** @throws SyntaxError for what Python refuses. */
export function parsePythonJson(text: string): PythonValue {
  return readJson<PythonPart>(text, {
    words: { NaN: NaN, Infinity: Infinity, '-Infinity': -Infinity },
    integer: BigInt,
    float: Number,
    object: (entries) => entries,
  });
}

/** Python's `a == b`. */
export function pythonEquals(a: PythonValue, b: PythonValue): boolean {
  const [x, y] = [asNumber(a), asNumber(b)];
  // Comparing a bigint with a number is exact. NaN equals nothing.
  if (x !== undefined && y !== undefined) return x <= y && x >= y;
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, i) => areSame(item, b[i] ?? null));
  if (a instanceof Map && b instanceof Map) return areEqualDicts(a, b);
  return a === b;
}

function areEqualDicts(a: PythonDict, b: PythonDict): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) {
    const other = b.get(key);
    if (other === undefined || !areSame(value, other)) return false;
  }
  return true;
}

/** Equality inside lists and dicts: there an object equals itself, and `json.loads` has one NaN. */
function areSame(a: PythonValue, b: PythonValue): boolean {
  return Object.is(a, b) || pythonEquals(a, b);
}

/** True is 1 and False is 0, as in Python. */
function asNumber(value: PythonValue): bigint | number | undefined {
  if (typeof value === 'boolean') return value ? 1n : 0n;
  return typeof value === 'bigint' || typeof value === 'number' ? value : undefined;
}

function isList(value: PythonValue): value is readonly PythonValue[] {
  return Array.isArray(value);
}
