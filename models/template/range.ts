/** Python's `range`, and access to an element by a Python index. */
import { spend } from './budget.ts';
import { refuse } from './errors.ts';
import { PyObject, type Value, numberOf } from './values.ts';

/** Longest range the sandbox allows. */
const maxRange = 100_000;

export class Range extends PyObject {
  readonly typeName = 'range';
  readonly #bounds: readonly [bigint, bigint, bigint];
  readonly #items: readonly bigint[];
  constructor(start: bigint, stop: bigint, step: bigint) {
    super();
    if (step === 0n) refuse('range() arg 3 must not be zero');
    const span = step > 0n ? stop - start : start - stop;
    const size = span <= 0n ? 0n : (span - 1n) / (step > 0n ? step : -step) + 1n;
    if (size > BigInt(maxRange))
      refuse(`Range too big. The sandbox blocks ranges larger than MAX_RANGE (${maxRange}).`);
    this.#bounds = [start, stop, step];
    spend(Number(size));
    this.#items = Array.from({ length: Number(size) }, (_, i) => start + BigInt(i) * step);
  }
  override item(key: Value): Value | undefined {
    const index = numberOf(key);
    return typeof index === 'bigint' ? elementAt(this.#items, index) : undefined;
  }
  override iterate(): Iterator<Value> {
    return this.#items[Symbol.iterator]();
  }
  override length(): number {
    return this.#items.length;
  }
  override repr(): string {
    const [start, stop, step] = this.#bounds;
    return step === 1n ? `range(${start}, ${stop})` : `range(${start}, ${stop}, ${step})`;
  }
}

/** `items[index]` as Python reads it: a negative index counts from the end; undefined when there is none. */
export function elementAt<T>(items: readonly T[], index: bigint): T | undefined {
  return items[Number(index < 0n ? index + BigInt(items.length) : index)];
}
