/** JSON text as Python's `json.loads` reads it: whole numbers keep every digit, and NaN and Infinity are numbers. */
import type { PythonValue } from './values.ts';

const tokens =
  /\s*(?:([[\]{},:])|("[^"\\]*(?:\\.[^"\\]*)*")|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|-?Infinity|NaN)|(true|false|null))/y;

/** Throws Error for text that is no JSON. */
export function parsePythonJson(text: string): PythonValue {
  const reader = new Reader(text);
  const value = reader.value();
  reader.end();
  return value;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): PythonValue {
    const { sign, string, number, word } = this.#next();
    if (string !== undefined) return JSON.parse(string) as string;
    if (number !== undefined) return numberOf(number);
    if (word !== undefined) return word === 'null' ? null : word === 'true';
    if (sign === '[') return this.#list(']', () => this.value());
    if (sign === '{') return { type: 'dict', entries: this.#list('}', () => this.#entry()) };
    throw this.#error();
  }

  end(): void {
    if (this.#text.slice(this.#at).trim() !== '') throw this.#error();
  }

  #list<T>(close: string, read: () => T): T[] {
    const items: T[] = [];
    if (this.#takes(close)) return items;
    for (;;) {
      items.push(read());
      if (this.#takes(close)) return items;
      if (!this.#takes(',')) throw this.#error();
    }
  }

  #entry(): readonly [PythonValue, PythonValue] {
    const { string } = this.#next();
    if (string === undefined || !this.#takes(':')) throw this.#error();
    return [JSON.parse(string) as string, this.value()];
  }

  #takes(sign: string): boolean {
    const before = this.#at;
    if (this.#next().sign === sign) return true;
    this.#at = before;
    return false;
  }

  #next() {
    tokens.lastIndex = this.#at;
    const found = tokens.exec(this.#text);
    if (found === null) throw this.#error();
    this.#at = tokens.lastIndex;
    const [, sign, string, number, word] = found;
    return { sign, string, number, word };
  }

  #error(): Error {
    return new Error(`this is no JSON: ${this.#text.slice(this.#at, this.#at + 40)}`);
  }
}

function numberOf(text: string): bigint | number {
  return /^-?\d+$/.test(text) ? BigInt(text) : Number(text);
}
