/**
 * JSON for prompts: 1.0 stays a float, large integers keep their digits, keys that look like numbers keep their order.
 * `JSON.parse` loses all three, and a chat template prints them.
 */

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
 * Longest integer, in digits. The same limit as Python's json, because the time grows with the square of the length.
 */
const maxDigits = 4300;

/**
 * Does what JSON.parse does, but loses nothing: whole floats come as `Float`, unsafe integers as bigint, objects with
 * number-like keys as Map. Throws SyntaxError.
 */
export function parseJson(text: string): unknown {
  return isLossy(text) ? new Reader(text).read() : (JSON.parse(text) as unknown);
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

const number = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const quoteOrBackslash = /["\\]/g;
const blank = /[ \t\n\r]*/y;
const word = /true|false|null/y;

/** Deepest nesting read. */
const maxDepth = 1000;

/**
 * The end of the string that starts here; undefined where none starts, or it has no end. It is searched without a
 * regular expression for the whole string, which would run out of stack on megabytes.
 */
function endOfString(text: string, start: number): number | undefined {
  if (text[start] !== '"') return undefined;
  for (let at = start + 1; ; at += 2) {
    quoteOrBackslash.lastIndex = at;
    const found = quoteOrBackslash.exec(text);
    if (found === null) return undefined;
    at = found.index;
    if (found[0] === '"') return at + 1;
  }
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): unknown {
    const value = this.#value(0);
    this.#take(blank);
    if (this.#at !== this.#text.length) throw this.#fail();
    return value;
  }

  #value(depth: number): unknown {
    if (depth > maxDepth) throw new SyntaxError(`JSON nested deeper than ${maxDepth}`);
    this.#take(blank);
    const first = this.#text[this.#at];
    if (first === '{') return this.#object(depth);
    if (first === '[') return this.#list(depth);
    if (first === '"') return this.#string();
    const known = this.#take(word);
    if (known !== undefined) return known === 'null' ? null : known === 'true';
    return this.#number();
  }

  #number(): unknown {
    number.lastIndex = this.#at;
    const match = number.exec(this.#text);
    if (match === null) throw this.#fail();
    this.#at += match[0].length;
    const value = Number(match[0]);
    if (match[1] !== undefined || match[2] !== undefined) return Number.isInteger(value) ? new Float(value) : value;
    if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
    if (match[0].length > maxDigits) throw new SyntaxError(`JSON has an integer of more than ${maxDigits} digits`);
    return BigInt(match[0]);
  }

  #string(): string {
    const end = endOfString(this.#text, this.#at);
    if (end === undefined) throw this.#fail();
    const text = JSON.parse(this.#text.slice(this.#at, end)) as string;
    this.#at = end;
    return text;
  }

  #list(depth: number): unknown[] {
    const items: unknown[] = [];
    this.#at++;
    if (this.#skip(']')) return items;
    do items.push(this.#value(depth + 1));
    while (this.#skip(','));
    if (!this.#skip(']')) throw this.#fail();
    return items;
  }

  #object(depth: number): unknown {
    const entries = new Map<string, unknown>();
    this.#at++;
    if (this.#skip('}')) return {};
    do {
      this.#take(blank);
      const key = this.#string();
      if (!this.#skip(':')) throw this.#fail();
      entries.set(key, this.#value(depth + 1));
    } while (this.#skip(','));
    if (!this.#skip('}')) throw this.#fail();
    const ordered = [...entries.keys()].some((key) => /^(?:0|[1-9]\d*)$/.test(key));
    return ordered ? entries : Object.fromEntries(entries);
  }

  #skip(character: string): boolean {
    this.#take(blank);
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at += match[0].length;
    return match[0];
  }

  #fail(): SyntaxError {
    const found = this.#text[this.#at];
    return new SyntaxError(
      found === undefined
        ? 'JSON ends too early'
        : `unexpected ${JSON.stringify(found)} in JSON at position ${this.#at}`,
    );
  }
}
