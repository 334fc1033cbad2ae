/** Converts JSON-like data to template values. */
import { refuse } from './errors.ts';
import { Float } from '../json.ts';
import { Dict, type Value, none } from './values.ts';

/**
 * A number without fraction becomes an int, unless it is a `Float`. Big ints come as bigint. A Map keeps the order of
 * keys that look like numbers. Keys whose value is undefined are left out.
 */
export function toValue(data: unknown): Value {
  if (data === null) return none;
  if (typeof data === 'string' || typeof data === 'boolean' || typeof data === 'bigint') return data;
  if (typeof data === 'number') return Number.isInteger(data) && !Object.is(data, -0) ? BigInt(data) : data;
  if (data instanceof Float) return data.value;
  if (Array.isArray(data)) return data.map(toValue);
  if (typeof data === 'object') {
    const entries = data instanceof Map ? [...(data as Map<unknown, unknown>)] : Object.entries(data);
    return new Dict(
      entries.filter(([, value]) => value !== undefined).map(([key, value]) => [toValue(key), toValue(value)] as const),
    );
  }
  return refuse(`a ${typeof data} cannot be passed to a chat template`);
}
