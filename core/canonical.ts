/**
 * Canonical JSON: exactly one text per value, so that its digest identifies the value. RFC 8785 (JCS): no blanks, keys
 * ascending by UTF-16 code units, ECMAScript numbers.
 */
import { TerminalError } from './errors.ts';

/**
 * Throws TerminalError for values that JSON cannot represent: NaN, infinities, bigint, functions, undefined in an
 * array, lone surrogates.
 */
export function canonicalJson(value: unknown): string {
  return write(value, '$');
}

function write(value: unknown, at: string): string {
  switch (typeof value) {
    case 'string':
      return writeString(value, at);
    case 'number':
      if (!Number.isFinite(value)) throw notJson(`${value}`, at);
      return JSON.stringify(value);
    case 'boolean':
      return String(value);
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? writeArray(value, at) : writeObject(value, at);
    default:
      throw notJson(typeof value, at);
  }
}

/** A lone half of a surrogate pair: with the u flag a pair is one code point, so only halves match. */
const LONE_SURROGATE = /[\uD800-\uDFFF]/u;

function writeString(value: string, at: string): string {
  if (LONE_SURROGATE.test(value)) throw notJson('a lone surrogate', at);
  return JSON.stringify(value);
}

function writeArray(items: readonly unknown[], at: string): string {
  return `[${items.map((item, index) => write(item, `${at}[${index}]`)).join(',')}]`;
}

function writeObject(value: object, at: string): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw notJson(value.constructor.name, at);
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, item]) => `${writeString(name, at)}:${write(item, `${at}.${name}`)}`);
  return `{${entries.join(',')}}`;
}

function notJson(what: string, at: string): TerminalError {
  return new TerminalError('NotJson', `${what} has no canonical JSON form`, { where: at });
}
