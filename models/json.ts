/**
 * JSON for prompts: 1.0 stays a float, large integers keep their digits, keys that look like numbers keep their order.
 * `JSON.parse` loses all three, and a chat template prints them.
 */
import { endOfString, readJson } from '../core/json-reader.ts';
import type { JsonForms } from '../core/json-reader.ts';

/** A number written with a point or an exponent whose value is whole. */
export class Float {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
  toJSON(): number {
    return this.value;
  }
}

/**
 * Signs of a number that JSON.parse would change. No part of the pattern may retry a run of digits from each position,
 * because hostile files contain long runs.
 */
const lossyNumber = /\d\.(?!\d)|\.\d*0(?!\d)|\d[eE]|\d{16}|-0|NaN|Infinity/;

/** A key that JSON.parse would move. In a string its quotes would have backslashes before them. */
const lossyKey = /"\d+"\s*:/;

/**
 * Does what JSON.parse does, but loses nothing: whole floats come as `Float`, unsafe integers as bigint, objects with
 * number-like keys as Map. Throws SyntaxError.
 */
export function parseJson(text: string): unknown {
  return isLossy(text) ? readJson(text, lossless) : (JSON.parse(text) as unknown);
}

/** Could JSON.parse change something in this text? Digits in strings, of UUIDs for instance, do not count. */
export function isLossy(text: string): boolean {
  return lossyKey.test(text) || (lossyNumber.test(text) && lossyNumber.test(outsideStrings(text)));
}

/** What stands between the strings of a JSON text; each string is a quote. */
function outsideStrings(text: string): string {
  let [outside, end] = ['', 0];
  for (let quote = text.indexOf('"'); quote >= 0; quote = text.indexOf('"', end)) {
    outside += text.slice(end, quote + 1);
    end = endOfString(text, quote) ?? text.length;
  }
  return outside + text.slice(end);
}

const lossless: JsonForms<unknown> = {
  integer: (text) => {
    const value = Number(text);
    if (!Number.isSafeInteger(value)) return BigInt(text);
    return value === 0 ? 0 : value;
  },
  float: (text) => {
    const value = Number(text);
    return Number.isInteger(value) ? new Float(value) : value;
  },
  object: (entries) =>
    [...entries.keys()].some((key) => /^(?:0|[1-9]\d*)$/.test(key)) ? entries : Object.fromEntries(entries),
};
