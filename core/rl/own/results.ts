/** Checks of what a module of the user's own returns. Each error names the field and what was expected of it. */
import { InvalidInputError } from '../../errors.ts';
import type { RaggedRows } from '../ragged.ts';
import type { OwnRows } from './types.ts';

/** Metrics of one call; more would be a table, not a summary. */
const mostMetrics = 20;

/** A copy of its own for the module. */
export const ownRows = ({ offsets_S1, mask_T }: RaggedRows): OwnRows => ({
  offsets_S1: new Int32Array(offsets_S1),
  mask_T: new Float64Array(mask_T),
});

/**
 * @throws InvalidInputError for anything but an object; a promise is named, because an async function is an easy
 * mistake.
 */
export function checkedObject<T extends object>(result: T): T {
  if (result instanceof Promise) {
    result.catch(() => {}); // it is refused, so nobody waits for it
    throw new InvalidInputError('compute: expected a result at once, got a promise', { hint: 'remove async' });
  }
  if (typeof result === 'object' && result !== null) return result;
  throw new InvalidInputError(`compute: expected an object, got ${String(result)}`);
}

/** A copy. @throws InvalidInputError for another type or length. */
export function checkedNumbers(name: string, values: unknown, length: number): Float64Array {
  const isNumbers = ArrayBuffer.isView(values) || Array.isArray(values);
  if (!isNumbers) throw new InvalidInputError(`${name}: expected a Float64Array, got ${describe(values)}`);
  const copy = new Float64Array(values as unknown as ArrayLike<number>);
  if (copy.length === length) return copy;
  throw new InvalidInputError(`${name}: expected ${length} values, got ${copy.length}`);
}

/** @throws InvalidInputError that names the first value that is no finite number. */
export function requireFinite(name: string, values: Float64Array): void {
  const i = values.findIndex((value) => !Number.isFinite(value));
  if (i >= 0) throw new InvalidInputError(`${name}[${i}] is ${values[i]}: expected finite numbers`);
}

/**
 * The metrics under the names of the table of metrics. @throws InvalidInputError for a name or a value that no metric
 * may have.
 */
export function metricsOf(given: unknown): Record<string, number> {
  if (given === undefined) return {};
  if (typeof given !== 'object' || given === null)
    throw new InvalidInputError(`metrics: expected numbers by name, got ${describe(given)}`);
  const entries = Object.entries(given);
  if (entries.length > mostMetrics)
    throw new InvalidInputError(`metrics: expected at most ${mostMetrics}, got ${entries.length}`);
  for (const [name, value] of entries) {
    if (!/^[A-Za-z]\w{0,39}$/.test(name))
      throw new InvalidInputError(`metrics: expected names of letters, digits and _, got "${name}"`);
    if (typeof value !== 'number' || !Number.isFinite(value))
      throw new InvalidInputError(`metrics.${name}: expected a finite number, got ${String(value)}`);
  }
  return Object.fromEntries(entries.map(([name, value]) => [`actor/own/${name}`, value as number]));
}

const describe = (value: unknown): string => (value === undefined ? 'nothing' : typeof value);
