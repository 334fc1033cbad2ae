/**
 * Values inside a template, with Python's types: None is `none`, int is bigint, float is number, str is string, list is
 * an array. Everything else is a class here.
 */
import { spendOnText } from './budget.ts';
import { refuse } from './errors.ts';

export type Value = boolean | bigint | number | string | Value[] | PyObject;

export type Keywords = ReadonlyMap<string, Value>;

/** A value with its own behaviour. A missing method means that Python would raise TypeError. */
export abstract class PyObject {
  abstract readonly typeName: string;
  attribute(_name: string): Value | undefined {
    return undefined;
  }
  /** Item by key; undefined when it has none (LookupError, TypeError). */
  item(_key: Value): Value | undefined {
    return undefined;
  }
  iterate?(): Iterator<Value>;
  length?(): number;
  call?(args: readonly Value[], keywords: Keywords): Value;
  truth(): boolean {
    return this.length === undefined || this.length() > 0;
  }
  repr(): string {
    return `<${this.typeName} object>`;
  }
}

class None extends PyObject {
  readonly typeName = 'NoneType';
  override truth(): boolean {
    return false;
  }
  override repr(): string {
    return 'None';
  }
}

/** Python's None. Not null, so that "missing" (undefined) and None cannot be confused. */
export const none: PyObject = new None();

/** A str that is marked as HTML-safe. It prints like any text; `+` escapes text that is not marked. */
export class Markup extends PyObject {
  readonly typeName = 'Markup';
  readonly text: string;
  constructor(text: string) {
    super();
    this.text = text;
  }
  override truth(): boolean {
    return this.text !== '';
  }
}

export class Tuple extends PyObject {
  readonly typeName = 'tuple';
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    super();
    this.items = items;
  }
  override iterate(): Iterator<Value> {
    return this.items[Symbol.iterator]();
  }
  override length(): number {
    return this.items.length;
  }
}

/** A dict: keys of any hashable type, in the order of insertion; 1, 1.0 and True are one key, as in Python. */
export class Dict extends PyObject {
  readonly typeName = 'dict';
  readonly #entries = new Map<string, readonly [Value, Value]>();

  constructor(pairs: Iterable<readonly [Value, Value]> = []) {
    super();
    for (const [key, value] of pairs) this.set(key, value);
  }
  get(key: Value): Value | undefined {
    return this.#entries.get(hashKey(key))?.[1];
  }
  has(key: Value): boolean {
    return this.#entries.has(hashKey(key));
  }
  /** Only for building a dict; templates cannot change a dict. */
  set(key: Value, value: Value): void {
    const hash = hashKey(key);
    this.#entries.set(hash, [this.#entries.get(hash)?.[0] ?? key, value]);
  }
  entries(): (readonly [Value, Value])[] {
    return [...this.#entries.values()];
  }
  keys(): Value[] {
    return this.entries().map(([key]) => key);
  }
  override item(key: Value): Value | undefined {
    return isHashable(key) ? this.get(key) : undefined;
  }
  override iterate(): Iterator<Value> {
    return this.keys()[Symbol.iterator]();
  }
  override length(): number {
    return this.#entries.size;
  }
}

/** Prints as nothing, is false and empty; any other use throws an error with the missing name. */
export class Undefined extends PyObject {
  readonly typeName = 'Undefined';
  readonly reason: string;
  constructor(reason: string) {
    super();
    this.reason = reason;
  }
  fail(): never {
    return refuse(this.reason);
  }
  override iterate(): Iterator<Value> {
    return [][Symbol.iterator]();
  }
  override length(): number {
    return 0;
  }
  override call(): Value {
    return this.fail();
  }
  override repr(): string {
    return 'Undefined';
  }
}

/** An iterator that can be read once: the result of `map`, `select`, `items` … */
export class Lazy extends PyObject {
  readonly typeName = 'generator';
  readonly #iterator: Iterator<Value>;
  constructor(iterator: Iterator<Value>) {
    super();
    this.#iterator = iterator;
  }
  override iterate(): Iterator<Value> {
    return this.#iterator;
  }
}

/** keys(), values() or items() of a dict. */
export class DictView extends PyObject {
  readonly typeName: string;
  readonly items: readonly Value[];
  constructor(kind: 'keys' | 'values' | 'items', items: readonly Value[]) {
    super();
    this.typeName = `dict_${kind}`;
    this.items = items;
  }
  override iterate(): Iterator<Value> {
    return this.items[Symbol.iterator]();
  }
  override length(): number {
    return this.items.length;
  }
}

/** A function that templates can call, with Python's rules for positional and keyword arguments. */
export class Native extends PyObject {
  readonly typeName = 'function';
  readonly #name: string;
  readonly #body: (args: readonly Value[], keywords: Keywords) => Value;
  constructor(name: string, body: (args: readonly Value[], keywords: Keywords) => Value) {
    super();
    this.#name = name;
    this.#body = body;
  }
  override call(args: readonly Value[], keywords: Keywords): Value {
    return this.#body(args, keywords);
  }
  override repr(): string {
    return `<function ${this.#name}>`;
  }
}

/** The name of a value's Python type, for error messages. */
export function typeName(value: Value): string {
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'number') return 'float';
  if (typeof value === 'string') return 'str';
  return Array.isArray(value) ? 'list' : value.typeName;
}

/** The text of a str, marked or not; undefined for anything else. */
export function textOf(value: Value): string | undefined {
  if (typeof value === 'string') return value;
  return value instanceof Markup ? value.text : undefined;
}

/** A number for arithmetic (True is 1); undefined for other values. */
export function numberOf(value: Value): bigint | number | undefined {
  if (typeof value === 'bigint' || typeof value === 'number') return value;
  return typeof value === 'boolean' ? BigInt(value) : undefined;
}

export function truth(value: Value): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value instanceof PyObject ? value.truth() : Boolean(value);
}

/** Two keys are equal exactly when their hashes are equal. Lists and dicts cannot be keys. */
export function hashKey(value: Value): string {
  const text = textOf(value);
  if (text !== undefined) return `s${text}`;
  const number = numberOf(value);
  if (number !== undefined) return `n${number}`;
  if (value === none) return 'N';
  if (value instanceof Tuple) {
    const hash = `t${value.items.map((item) => JSON.stringify(hashKey(item))).join()}`;
    spendOnText(hash.length); // nested quotes double at each level
    return hash;
  }
  if (value instanceof Undefined) return 'U';
  if (Array.isArray(value) || value instanceof Dict) return refuse(`unhashable type: '${typeName(value)}'`);
  return `o${identity(value as PyObject)}`;
}

function isHashable(value: Value): boolean {
  if (value instanceof Tuple) return value.items.every(isHashable);
  return !Array.isArray(value) && !(value instanceof Dict);
}

const identities = new WeakMap<object, number>();
let nextIdentity = 1;

function identity(value: object): number {
  const known = identities.get(value) ?? nextIdentity++;
  identities.set(value, known);
  return known;
}
