/**
 * Results of Python functions, and whether they are the expected ones. runner.py keeps what JSON alone would lose:
 * whole numbers of any size, tuples, and keys that are no text.
 */

/** A Python value: a list is an array, a whole number a bigint. */
export type PythonValue = null | string | boolean | bigint | number | readonly PythonValue[] | Tuple | Dictionary;

interface Tuple {
  readonly type: 'tuple';
  readonly items: readonly PythonValue[];
}

interface Dictionary {
  readonly type: 'dict';
  readonly entries: readonly (readonly [PythonValue, PythonValue])[];
}

/** The value that runner.py wrote. Throws Error when it is none. */
export function decodeResult(value: unknown): PythonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (Array.isArray(value)) return value.map(decodeResult);
  if (typeof value === 'object') {
    const { int, float, tuple, dict } = value as Record<string, unknown>;
    if (typeof int === 'string' && /^-?\d+$/.test(int)) return BigInt(int);
    if (typeof float === 'string') return floatOf(float);
    if (Array.isArray(tuple)) return { type: 'tuple', items: tuple.map(decodeResult) };
    if (Array.isArray(dict)) return { type: 'dict', entries: dict.map(decodeEntry) };
  }
  throw new Error('the runner wrote no value');
}

function decodeEntry(pair: unknown): readonly [PythonValue, PythonValue] {
  if (!Array.isArray(pair) || pair.length !== 2) throw new Error('the runner wrote no value');
  return [decodeResult(pair[0]), decodeResult(pair[1])];
}

function floatOf(text: string): number {
  return /^-?inf$/.test(text) ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text);
}

/**
 * Is a result the expected value? (verl: `prime_code/testing_util.py`.) It is if it equals the value, or the first
 * element of a list; a tuple around the result counts as a list, and tuples in it only beside the first element. Of an
 * expected dictionary, alone or first in a list, the keys are read as whole numbers where all are, and then it is alone
 * in a list.
 */
export function isExpectedResult(result: PythonValue, given: PythonValue): boolean {
  const expected = withNumberKeys(given);
  const listed = isTuple(result) ? result.items : result;
  if (equal(listed, expected)) return true;
  if (!isList(expected) || expected.length === 0) return false;
  const [first = null] = expected;
  if (equal(listed, first)) return true;
  if (!isList(listed) || !isTuple(listed[0] ?? null)) return false;
  const lists = listed.map(asList);
  return lists.every((item) => item !== undefined) && equal(lists, first);
}

function withNumberKeys(value: PythonValue): PythonValue {
  const dictionary = isList(value) ? (value[0] ?? null) : value;
  if (!isDictionary(dictionary)) return value;
  const entries = dictionary.entries.map(([key, item]) => [wholeNumber(key), item] as const);
  if (entries.some(([key]) => key === undefined)) return value;
  return [{ type: 'dict', entries: entries as [bigint, PythonValue][] }];
}

/** Python's `int(text)`. */
function wholeNumber(key: PythonValue): bigint | undefined {
  return typeof key === 'string' && /^\s*[+-]?\d+(_\d+)*\s*$/.test(key)
    ? BigInt(key.trim().replaceAll('_', '').replace(/^\+/, ''))
    : undefined;
}

/** Python's `list(value)`; undefined where it raises an error. */
function asList(value: PythonValue): readonly PythonValue[] | undefined {
  if (typeof value === 'string') return [...value];
  if (isDictionary(value)) return value.entries.map(([key]) => key);
  return isTuple(value) ? value.items : isList(value) ? value : undefined;
}

/** Python's `==`: numbers by value, True as 1. */
function equal(a: PythonValue, b: PythonValue): boolean {
  if (isList(a)) return isList(b) && equalItems(a, b);
  if (isTuple(a)) return isTuple(b) && equalItems(a.items, b.items);
  if (isDictionary(a)) return isDictionary(b) && equalEntries(a.entries, b.entries);
  const [one, other] = [asNumber(a), asNumber(b)];
  // biome-ignore lint/suspicious/noDoubleEquals: 2n == 2 compares a bigint with a number exactly.
  if (one !== undefined && other !== undefined) return one == other;
  return a === b;
}

function asNumber(value: PythonValue): bigint | number | undefined {
  if (typeof value === 'boolean') return value ? 1n : 0n;
  return typeof value === 'bigint' || typeof value === 'number' ? value : undefined;
}

function equalItems(a: readonly PythonValue[], b: readonly PythonValue[]): boolean {
  return a.length === b.length && a.every((item, i) => equal(item, b[i] ?? null));
}

function equalEntries(a: Dictionary['entries'], b: Dictionary['entries']): boolean {
  const other = new Map(b.map(([key, item]) => [keyText(key), item]));
  return (
    a.length === other.size &&
    a.every(([key, item]) => other.has(keyText(key)) && equal(item, other.get(keyText(key)) ?? null))
  );
}

/** One text for all keys that are equal. */
function keyText(key: PythonValue): string {
  const number = asNumber(key);
  if (number === undefined) return JSON.stringify(key, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
  return `number ${typeof number === 'number' && Number.isInteger(number) ? BigInt(number) : number}`;
}

/** The value as Python would print it. */
export function showValue(value: PythonValue): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (isList(value)) return `[${value.map(showValue).join(', ')}]`;
  if (isTuple(value)) return `(${value.items.map(showValue).join(', ')}${value.items.length === 1 ? ',' : ''})`;
  if (isDictionary(value))
    return `{${value.entries.map(([key, item]) => `${showValue(key)}: ${showValue(item)}`).join(', ')}}`;
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

const isList = (value: PythonValue): value is readonly PythonValue[] => Array.isArray(value);

function isTuple(value: PythonValue): value is Tuple {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'tuple';
}

function isDictionary(value: PythonValue): value is Dictionary {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'dict';
}
