/** Values of Parquet's types as JSON has them. */
import type { DecodedArray } from 'hyparquet';
import { notText } from './text.ts';

/** Values of a column. A list of texts or of numbers is returned as it is. */
export function plainJson(values: DecodedArray): DecodedArray {
  const isPlain =
    ArrayBuffer.isView(values) && !(values instanceof BigInt64Array) && !(values instanceof BigUint64Array);
  if (isPlain) return values;
  const items = values as ArrayLike<unknown>;
  for (let i = 0; i < items.length; i++)
    if (!isJson(items[i])) return Array.from(items, (value) => (isJson(value) ? value : jsonValue(value)));
  return values;
}

const isJson = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || value === notText;

/** Int64 comes as bigint and stays one where it is too large for a number; dates become ISO text, bytes base64. */
export function jsonValue(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) return value.map(jsonValue);
  if (typeof value !== 'object' || value === null) return value ?? null;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, jsonValue(item)]));
}

/** Is there an integer that JSON.parse would round? */
export function hasBigInteger(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint';
  return Object.values(value).some(hasBigInteger);
}

/** The same value with numbers for the integers that are too large for them. */
export function rounded(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, rounded(item)]));
}
