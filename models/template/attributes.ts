/**
 * `a.b`, `a['b']` and slices. The rules: `a.b` tries the attribute first, `a['b']` the key first, and the sandbox hides
 * some attributes.
 */
import { refuse } from './errors.ts';
import { toArray } from './iterate.ts';
import { listMethod, dictMethod, isMutator, tupleMethod } from './methods/collections.ts';
import { textMethod } from './methods/text-methods.ts';
import { repr } from './print.ts';
import { elementAt, Range } from './range.ts';
import { codePoints } from './python-strings.ts';
import {
  Dict,
  Lazy,
  Markup,
  PyObject,
  Tuple,
  Undefined,
  type Value,
  numberOf,
  textOf,
  typeName,
  none,
} from './values.ts';

/** `value.name`: the attribute; otherwise the key; otherwise undefined. */
export function getAttribute(value: Value, name: string): Value {
  if (value instanceof Undefined) return value.fail();
  const attribute = attributeOf(value, name);
  if (attribute !== undefined) return attribute;
  return itemOf(value, name) ?? absent(value, name);
}

/** `value[key]`: the key; otherwise, for a name, the attribute; otherwise undefined. */
export function getItem(value: Value, key: Value): Value {
  if (value instanceof Undefined) return value.fail();
  const item = itemOf(value, key);
  if (item !== undefined) return item;
  const name = textOf(key);
  return (name === undefined ? undefined : attributeOf(value, name)) ?? absent(value, key);
}

function absent(value: Value, key: Value): Undefined {
  const owner = value === none ? 'None' : `${typeName(value)} object`;
  const name = textOf(key);
  if (name === undefined) return new Undefined(`${owner} has no element ${repr(key)}`);
  return new Undefined(`'${owner}' has no attribute ${repr(name)}`);
}

/**
 * A Python attribute that a template may read. For an attribute that the sandbox forbids, an Undefined that fails when
 * it is used.
 */
function attributeOf(value: Value, name: string): Value | undefined {
  if (name.startsWith('__') && name.endsWith('__')) return unsafe(value, name);
  if (isMutator(value, name)) return unsafe(value, name);
  const text = textOf(value);
  if (text !== undefined) return textMethod(text, name, value instanceof Markup, { getAttribute, getItem });
  if (Array.isArray(value)) return listMethod(value, name);
  if (value instanceof Dict) return dictMethod(value, name);
  if (value instanceof Tuple) return value.attribute(name) ?? tupleMethod(value, name);
  if (value instanceof PyObject) return value.attribute(name);
  return numberAttribute(value, name);
}

function unsafe(value: Value, name: string): Undefined {
  return new Undefined(`access to attribute ${repr(name)} of ${repr(typeName(value))} object is unsafe.`);
}

function numberAttribute(value: Value, name: string): Value | undefined {
  const number = numberOf(value);
  if (number === undefined) return undefined;
  if (name === 'real') return number;
  if (name === 'imag') return typeof number === 'bigint' ? 0n : 0;
  return undefined;
}

function itemOf(value: Value, key: Value): Value | undefined {
  const text = textOf(value);
  const index = numberOf(key);
  if (text !== undefined) return typeof index === 'bigint' ? elementAt(codePoints(text), index) : undefined;
  if (Array.isArray(value)) return typeof index === 'bigint' ? elementAt(value, index) : undefined;
  if (value instanceof Tuple) return typeof index === 'bigint' ? elementAt(value.items, index) : undefined;
  return value instanceof PyObject ? value.item(key) : undefined;
}

/** `value[start:stop:step]`; none means that the part is not given. */
export function slice(value: Value, start: Value, stop: Value, step: Value): Value {
  if (value instanceof Undefined) return value.fail();
  const text = textOf(value);
  if (text !== undefined) {
    const points = slicePositions(codePoints(text), start, stop, step).join('');
    return value instanceof Markup ? new Markup(points) : points;
  }
  if (Array.isArray(value)) return slicePositions(value, start, stop, step);
  if (value instanceof Tuple) return new Tuple(slicePositions(value.items, start, stop, step));
  if (value instanceof Range) return new Lazy(slicePositions(toArray(value), start, stop, step)[Symbol.iterator]());
  return refuse(`'${typeName(value)}' object is not subscriptable`);
}

function slicePositions<T>(items: readonly T[], start: Value, stop: Value, step: Value): T[] {
  const by = bound(step) ?? 1;
  if (by === 0) return refuse('slice step cannot be zero');
  const size = items.length;
  const clamp = (value: Value, fallback: number, low: number, high: number): number => {
    const given = bound(value);
    if (given === undefined) return fallback;
    return Math.min(Math.max(given < 0 ? given + size : given, low), high);
  };
  const picked: T[] = [];
  if (by > 0) {
    const end = clamp(stop, size, 0, size);
    for (let i = clamp(start, 0, 0, size); i < end; i += by) picked.push(items[i] as T);
  } else {
    const end = clamp(stop, -1, -1, size - 1);
    for (let i = clamp(start, size - 1, -1, size - 1); i > end; i += by) picked.push(items[i] as T);
  }
  return picked;
}

function bound(value: Value): number | undefined {
  if (value === none) return undefined;
  if (value instanceof Undefined) return refuse('slice indices must be integers or None or have an __index__ method');
  const number = numberOf(value);
  return typeof number === 'bigint'
    ? Number(number)
    : refuse('slice indices must be integers or None or have an __index__ method');
}
