/** Iteration, length and unpacking, as Python's iter(), len() and tuple assignment. */
import { spend, spendOnText } from './budget.ts';
import { refuse } from './errors.ts';
import { PyObject, type Value, textOf, typeName } from './values.ts';
import { codePoints, lengthOf } from './python-strings.ts';

/** Undefined when the value cannot be iterated. */
export function iteratorOf(value: Value): Iterator<Value> | undefined {
  const text = textOf(value);
  if (text !== undefined) {
    spendOnText(text.length);
    return codePoints(text)[Symbol.iterator]();
  }
  if (Array.isArray(value)) return value[Symbol.iterator]();
  return value instanceof PyObject ? value.iterate?.() : undefined;
}

export function iterate(value: Value): Iterator<Value> {
  return iteratorOf(value) ?? refuse(`'${typeName(value)}' object is not iterable`);
}

export function toArray(value: Value): Value[] {
  const iterator = iterate(value);
  const items: Value[] = [];
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
    spend(1);
    items.push(next.value);
  }
  return items;
}

/** Undefined when the value has no length. */
export function lengthIfAny(value: Value): number | undefined {
  const text = textOf(value);
  if (text !== undefined) return lengthOf(text);
  if (Array.isArray(value)) return value.length;
  return value instanceof PyObject ? value.length?.() : undefined;
}

export function length(value: Value): number {
  return lengthIfAny(value) ?? refuse(`object of type '${typeName(value)}' has no len()`);
}

/** Exactly `count` items, or Python's error. */
export function unpack(value: Value, count: number): Value[] {
  if (iteratorOf(value) === undefined) return refuse(`cannot unpack non-iterable ${typeName(value)} object`);
  const items = toArray(value);
  if (items.length < count) return refuse(`not enough values to unpack (expected ${count}, got ${items.length})`);
  if (items.length > count) return refuse(`too many values to unpack (expected ${count})`);
  return items;
}
