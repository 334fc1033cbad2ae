/** The type of a filter, and the functions of the engine that it may use. */
import { getItem } from '../attributes.ts';
import { type Bound, bind } from '../signature.ts';
import { type Keywords, Lazy, Markup, Undefined, type Value, textOf, none } from '../values.ts';
import { str } from '../print.ts';

/** Filters and tests by name, for `map` and `select`. */
export interface Runtime {
  callFilter(name: string, value: Value, args: readonly Value[], keywords: Keywords): Value;
  callTest(name: string, value: Value, args: readonly Value[], keywords: Keywords): boolean;
}

export type Filter = (value: Value, args: readonly Value[], keywords: Keywords, runtime: Runtime) => Value;

/** A filter whose other parameters have names; `?` marks optional ones. */
export function filter(
  name: string,
  parameters: readonly string[],
  body: (value: Value, bound: Bound) => Value,
): Filter {
  return (value, args, keywords) => body(value, bind(name, parameters, args, keywords));
}

/** A filter from text to text. The result of text that is marked as safe is marked, too. */
export function textFilter(
  name: string,
  parameters: readonly string[],
  body: (text: string, bound: Bound) => string,
): Filter {
  return filter(name, parameters, (value, bound) => {
    const shown = body(str(value), bound);
    return value instanceof Markup ? new Markup(shown) : shown;
  });
}

export function lazily(generate: () => Generator<Value>): Lazy {
  return new Lazy(generate());
}

/** Looks up `a.b.0` step by step. An undefined value becomes `fallback`, if given. */
export function attributeGetter(attribute: Value | undefined, fallback?: Value): (item: Value) => Value {
  const name = attribute === undefined || attribute === none ? undefined : textOf(attribute);
  const path =
    attribute === undefined || attribute === none ? [] : name === undefined ? [attribute] : name.split('.').map(step);
  return (item) => {
    let value = item;
    for (const part of path) {
      value = getItem(value, part);
      if (value instanceof Undefined && fallback !== undefined && fallback !== none) value = fallback;
    }
    return value;
  };
}

function step(part: string): Value {
  return /^\d+$/.test(part) ? BigInt(part) : part;
}

/** Sorting and grouping ignore case by default. */
export function ignoreCase(value: Value): Value {
  return textOf(value)?.toLowerCase() ?? value;
}
