/** Methods of list, tuple and dict. Templates cannot call those that change their object. */
import { refuse } from '../errors.ts';
import { equal } from '../operators.ts';
import { repr } from '../print.ts';
import { integerArgument, native } from '../signature.ts';
import { Dict, DictView, type Native, Tuple, type Value, none } from '../values.ts';

const listMutators = new Set(['append', 'clear', 'pop', 'reverse', 'insert', 'sort', 'extend', 'remove']);
const dictMutators = new Set(['clear', 'pop', 'popitem', 'setdefault', 'update']);

export function isMutator(value: Value, name: string): boolean {
  return (Array.isArray(value) && listMutators.has(name)) || (value instanceof Dict && dictMutators.has(name));
}

export function listMethod(list: readonly Value[], name: string): Native | undefined {
  if (name === 'copy') return native('copy', [], () => [...list]);
  return searchMethod(list, name, 'list');
}

export function tupleMethod(tuple: Tuple, name: string): Native | undefined {
  return searchMethod(tuple.items, name, 'tuple');
}

function searchMethod(items: readonly Value[], name: string, owner: string): Native | undefined {
  if (name === 'count') {
    return native('count', ['value'], ([value = none]) => BigInt(items.filter((item) => equal(item, value)).length));
  }
  if (name !== 'index') return undefined;
  return native('index', ['value', 'start?', 'stop?'], ([value = none, start, stop]) => {
    const end = integerArgument(stop, items.length);
    for (let i = integerArgument(start, 0); i < Math.min(end, items.length); i++)
      if (equal(items[i] as Value, value)) return BigInt(i);
    return refuse(`${repr(value)} is not in ${owner}`);
  });
}

export function dictMethod(dict: Dict, name: string): Native | undefined {
  switch (name) {
    case 'get':
      return native('get', ['key', 'default?'], ([key = none, fallback = none]) => dict.get(key) ?? fallback);
    case 'keys':
      return native('keys', [], () => new DictView('keys', dict.keys()));
    case 'values':
      return native(
        'values',
        [],
        () =>
          new DictView(
            'values',
            dict.entries().map(([, value]) => value),
          ),
      );
    case 'items':
      return native(
        'items',
        [],
        () =>
          new DictView(
            'items',
            dict.entries().map((pair) => new Tuple(pair)),
          ),
      );
    case 'copy':
      return native('copy', [], () => new Dict(dict.entries()));
    default:
      return undefined;
  }
}
