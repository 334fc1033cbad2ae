/** Filters over lists, dicts and other iterables. */
import { getAttribute } from '../attributes.ts';
import { spend } from '../budget.ts';
import { refuse } from '../errors.ts';
import { iterate, iteratorOf, length, toArray } from '../iterate.ts';
import { binary, compare } from '../operators.ts';
import { str } from '../print.ts';
import { flagArgument, integerArgument, requiredText, textArgument } from '../signature.ts';
import { codePoints } from '../python-strings.ts';
import {
  Dict,
  type Keywords,
  Lazy,
  Tuple,
  Undefined,
  type Value,
  hashKey,
  numberOf,
  textOf,
  truth,
  typeName,
  none,
} from '../values.ts';
import { type Filter, type Runtime, attributeGetter, filter, ignoreCase, lazily } from './filter.ts';

/** The result of groupby: a pair with names. */
class Group extends Tuple {
  override attribute(name: string): Value | undefined {
    return name === 'grouper' ? this.items[0] : name === 'list' ? this.items[1] : undefined;
  }
}

export const listFilters: Readonly<Record<string, Filter>> = {
  length: filter('length', [], (value) => BigInt(length(value))),
  count: filter('count', [], (value) => BigInt(length(value))),
  list: filter('list', [], toArray),
  first: filter('first', [], (value) => {
    const next = iterate(value).next();
    return next.done === true ? new Undefined('No first item, sequence was empty.') : next.value;
  }),
  last: filter('last', [], (value) => reversed(value)?.[0] ?? new Undefined('No last item, sequence was empty.')),
  reverse: filter('reverse', [], (value) => {
    const text = textOf(value);
    if (text !== undefined) return codePoints(text).reverse().join('');
    if (value instanceof Lazy) return toArray(value).reverse();
    if (iteratorOf(value) === undefined) return refuse('argument must be iterable');
    return new Lazy(reversed(value)[Symbol.iterator]());
  }),
  join: filter('join', ['d?', 'attribute?'], (value, [separator = '', attribute]) => {
    const get = attributeGetter(attribute);
    return toArray(value)
      .map((item) => str(get(item)))
      .join(str(separator));
  }),
  default: defaultFilter,
  d: defaultFilter,
  items: filter('items', [], (value) =>
    lazily(function* () {
      if (value instanceof Undefined) return;
      if (!(value instanceof Dict)) return refuse('Can only get item pairs from a mapping.');
      for (const pair of value.entries()) yield new Tuple(pair);
    }),
  ),
  dictsort: filter('dictsort', ['case_sensitive?', 'by?', 'reverse?'], (value, [caseSensitive, by, reverse]) => {
    if (value instanceof Undefined) return value.fail();
    if (!(value instanceof Dict)) return refuse(`'${typeName(value)}' object has no attribute 'items'`);
    const position = { key: 0, value: 1 }[textArgument(by) ?? 'key'];
    if (position === undefined) return refuse('You can only sort by either "key" or "value"');
    const pairs = value.entries().map((pair) => new Tuple(pair));
    return sortBy(
      pairs,
      (pair) => keyOf((pair as Tuple).items[position] as Value, caseSensitive),
      flagArgument(reverse),
    );
  }),
  sort: filter('sort', ['reverse?', 'case_sensitive?', 'attribute?'], (value, [reverse, caseSensitive, attribute]) => {
    const text = attribute === undefined || attribute === none ? undefined : textOf(attribute);
    const getters = (text === undefined ? [attribute] : text.split(',')).map((part) => attributeGetter(part));
    return sortBy(
      toArray(value),
      (item) => new Tuple(getters.map((get) => keyOf(get(item), caseSensitive))),
      flagArgument(reverse),
    );
  }),
  unique: filter('unique', ['case_sensitive?', 'attribute?'], (value, [caseSensitive, attribute]) => {
    const get = attributeGetter(attribute);
    return lazily(function* () {
      const seen = new Set<string>();
      for (const item of each(value)) {
        const key = hashKey(keyOf(get(item), caseSensitive));
        if (!seen.has(key)) yield item;
        seen.add(key);
      }
    });
  }),
  min: filter('min', ['case_sensitive?', 'attribute?'], (value, [caseSensitive, attribute]) =>
    extreme(value, caseSensitive, attribute, -1),
  ),
  max: filter('max', ['case_sensitive?', 'attribute?'], (value, [caseSensitive, attribute]) =>
    extreme(value, caseSensitive, attribute, 1),
  ),
  sum: filter('sum', ['attribute?', 'start?'], (value, [attribute, start = 0n]) => {
    if (textOf(start) !== undefined) return refuse("sum() can't sum strings [use ''.join(seq) instead]");
    const get = attributeGetter(attribute);
    return toArray(value).reduce<Value>((total, item) => binary('+', total, get(item)), start);
  }),
  batch: filter('batch', ['linecount', 'fill_with?'], (value, [size, fill]) => {
    const width = integerArgument(size, 0);
    return lazily(function* () {
      let row: Value[] = [];
      for (const item of each(value)) {
        if (row.length === width) {
          yield row;
          row = [];
        }
        row.push(item);
      }
      if (row.length === 0) return;
      if (fill !== undefined && fill !== none) {
        spend(Math.max(0, width - row.length));
        while (row.length < width) row.push(fill);
      }
      yield row;
    });
  }),
  slice: filter('slice', ['slices', 'fill_with?'], (value, [slices, fill]) => {
    const count = integerArgument(slices, 1);
    return lazily(function* () {
      const items = toArray(value);
      if (count === 0) return refuse('integer division or modulo by zero');
      spend(Math.max(0, count));
      const [size, extra] = [Math.floor(items.length / count), items.length % count];
      for (let i = 0, at = 0; i < count; i++) {
        const end = at + size + (i < extra ? 1 : 0);
        const column = items.slice(at, end);
        if (fill !== undefined && fill !== none && i >= extra) column.push(fill);
        yield column;
        at = end;
      }
    });
  }),
  groupby: filter(
    'groupby',
    ['attribute', 'default?', 'case_sensitive?'],
    (value, [attribute, fallback, caseSensitive]) => {
      const get = attributeGetter(attribute, fallback);
      const key = (item: Value): Value => keyOf(get(item), caseSensitive);
      const groups: { key: Value; items: Value[] }[] = [];
      for (const item of sortBy(toArray(value), key, false)) {
        const last = groups.at(-1);
        if (last !== undefined && compare(last.key, key(item)) === 0) last.items.push(item);
        else groups.push({ key: key(item), items: [item] });
      }
      return groups.map(({ items }) => new Group([get(items[0] as Value), items]));
    },
  ),
  attr: filter('attr', ['name'], (value, [name]) => {
    const attribute = requiredText(name);
    if (
      value instanceof Dict &&
      value.get(attribute) !== undefined &&
      !['get', 'items', 'keys', 'values', 'copy'].includes(attribute)
    ) {
      return new Undefined(`'dict object' has no attribute '${attribute}'`);
    }
    return getAttribute(value, attribute);
  }),
  map: (value, args, keywords, runtime) => {
    const convert = mapper(args, keywords, runtime);
    return lazily(function* () {
      if (truth(value)) for (const item of each(value)) yield convert()(item);
    });
  },
  select: (value, args, keywords, runtime) => selected(value, args, keywords, runtime, false, true),
  reject: (value, args, keywords, runtime) => selected(value, args, keywords, runtime, false, false),
  selectattr: (value, args, keywords, runtime) => selected(value, args, keywords, runtime, true, true),
  rejectattr: (value, args, keywords, runtime) => selected(value, args, keywords, runtime, true, false),
};

function defaultFilter(value: Value, args: readonly Value[], keywords: Keywords): Value {
  return filter('default', ['default_value?', 'boolean?'], (given, [fallback = '', boolean]) =>
    given instanceof Undefined || (flagArgument(boolean) && !truth(given)) ? fallback : given,
  )(value, args, keywords, noRuntime);
}

const noRuntime: Runtime = { callFilter: () => none, callTest: () => false };

function mapper(args: readonly Value[], keywords: Keywords, runtime: Runtime): () => (item: Value) => Value {
  return () => {
    const attribute = keywords.get('attribute');
    if (args.length === 0 && attribute !== undefined) {
      const other = [...keywords.keys()].find((keyword) => keyword !== 'attribute' && keyword !== 'default');
      if (other !== undefined) return refuse(`Unexpected keyword argument '${other}'`);
      return attributeGetter(attribute, keywords.get('default'));
    }
    const [name, ...rest] = args;
    if (name === undefined) return refuse('map requires a filter argument');
    return (item) => runtime.callFilter(requiredText(name), item, rest, keywords);
  };
}

function selected(
  value: Value,
  args: readonly Value[],
  keywords: Keywords,
  runtime: Runtime,
  byAttribute: boolean,
  wanted: boolean,
): Lazy {
  return lazily(function* () {
    if (!truth(value)) return;
    if (byAttribute && args.length === 0) return refuse('Missing parameter for attribute name');
    const get = byAttribute ? attributeGetter(args[0]) : (item: Value): Value => item;
    const [name, ...rest] = byAttribute ? args.slice(1) : args;
    const test = (item: Value): boolean =>
      name === undefined ? truth(item) : runtime.callTest(requiredText(name), item, rest, keywords);
    for (const item of each(value)) if (test(get(item)) === wanted) yield item;
  });
}

function* each(value: Value): Generator<Value> {
  const iterator = iterate(value);
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
    spend(1);
    yield next.value;
  }
}

function reversed(value: Value): Value[] {
  if (value instanceof Lazy || numberOf(value) !== undefined || value === none)
    return refuse(`'${typeName(value)}' object is not reversible`);
  return toArray(value).reverse();
}

function keyOf(value: Value, caseSensitive: Value | undefined): Value {
  return flagArgument(caseSensitive) ? value : ignoreCase(value);
}

/** Stable, also when reversed. */
function sortBy(items: readonly Value[], key: (item: Value) => Value, reverse: boolean): Value[] {
  const keyed = items.map((item) => ({ item, key: key(item) }));
  keyed.sort((a, b) => (reverse ? compare(b.key, a.key) : compare(a.key, b.key)));
  return keyed.map(({ item }) => item);
}

function extreme(
  value: Value,
  caseSensitive: Value | undefined,
  attribute: Value | undefined,
  direction: 1 | -1,
): Value {
  const get = attributeGetter(attribute);
  const items = toArray(value);
  let best = items[0];
  if (best === undefined) return new Undefined('No aggregated item, sequence was empty.');
  for (const item of items.slice(1)) {
    if (compare(keyOf(get(item), caseSensitive), keyOf(get(best), caseSensitive)) * direction > 0) best = item;
  }
  return best;
}
