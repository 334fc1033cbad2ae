/**
 * JSON as Python's `json.loads` reads it, and Python's equality of the results. It differs from `JSON.parse`: integers
 * are exact, NaN and Infinity are numbers, and 3 = 3.0 and 1 = true.
 */

/** Integers are bigint, other numbers are number, objects are Map. */
export type PythonValue = null | boolean | string | bigint | number | readonly PythonValue[] | PythonDict;
export type PythonDict = ReadonlyMap<string, PythonValue>;

/** @throws SyntaxError for what Python refuses. */
export function parsePythonJson(text: string): PythonValue {
  const reader = new Reader(text);
  const value = reader.value();
  reader.end();
  return value;
}

/** Python's `a == b`. */
export function pythonEquals(a: PythonValue, b: PythonValue): boolean {
  const [x, y] = [asNumber(a), asNumber(b)];
  // Comparing a bigint with a number is exact. NaN equals nothing.
  if (x !== undefined && y !== undefined) return x <= y && x >= y;
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, i) => areSame(item, b[i] ?? null));
  if (a instanceof Map && b instanceof Map) return areEqualDicts(a, b);
  return a === b;
}

function areEqualDicts(a: PythonDict, b: PythonDict): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) {
    const other = b.get(key);
    if (other === undefined || !areSame(value, other)) return false;
  }
  return true;
}

/** Equality inside lists and dicts: there an object equals itself, and `json.loads` has one NaN. */
function areSame(a: PythonValue, b: PythonValue): boolean {
  return Object.is(a, b) || pythonEquals(a, b);
}

/** True is 1 and False is 0, as in Python. */
function asNumber(value: PythonValue): bigint | number | undefined {
  if (typeof value === 'boolean') return value ? 1n : 0n;
  return typeof value === 'bigint' || typeof value === 'number' ? value : undefined;
}

function isList(value: PythonValue): value is readonly PythonValue[] {
  return Array.isArray(value);
}

const literals: Readonly<Record<string, PythonValue>> = {
  null: null,
  true: true,
  false: false,
  NaN: NaN,
  Infinity: Infinity,
  '-Infinity': -Infinity,
};

const token =
  /[ \t\n\r]*(?:(?<mark>[[\]{},:])|(?<text>"(?:[^"\\\p{Cc}]+|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(?<number>-?(?:0|[1-9][0-9]*)(?<part>\.[0-9]+)?(?<power>[eE][-+]?[0-9]+)?)|(?<word>null|true|false|NaN|-?Infinity))/uy;
/** Python refuses to convert longer ones. */
const mostDigits = 4300;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): PythonValue {
    const { mark, text, number, part, power, word } = this.#next();
    if (text !== undefined) return JSON.parse(text) as string;
    if (word !== undefined) return literals[word] ?? null;
    if (number !== undefined) return part === undefined && power === undefined ? integer(number) : Number(number);
    if (mark === '[') return this.#list();
    if (mark === '{') return this.#dict();
    throw new SyntaxError(`no value before character ${this.#at}`);
  }

  end(): void {
    if (/^[ \t\n\r]*$/.test(this.#text.slice(this.#at))) return;
    throw new SyntaxError(`more than one value: character ${this.#at}`);
  }

  #list(): PythonValue[] {
    const items: PythonValue[] = [];
    if (this.#takes(']')) return items;
    for (;;) {
      items.push(this.value());
      if (this.#takes(']')) return items;
      this.#expect(',');
    }
  }

  #dict(): PythonDict {
    const entries = new Map<string, PythonValue>();
    if (this.#takes('}')) return entries;
    for (;;) {
      const { text } = this.#next();
      if (text === undefined) throw new SyntaxError(`no name before character ${this.#at}`);
      this.#expect(':');
      entries.set(JSON.parse(text) as string, this.value());
      if (this.#takes('}')) return entries;
      this.#expect(',');
    }
  }

  #takes(mark: string): boolean {
    const before = this.#at;
    if (this.#peek()?.['mark'] === mark) return true;
    this.#at = before;
    return false;
  }

  #expect(mark: string): void {
    if (!this.#takes(mark)) throw new SyntaxError(`expected ${mark} at character ${this.#at}`);
  }

  #next(): Token {
    const found = this.#peek();
    if (found === undefined) throw new SyntaxError(`no JSON at character ${this.#at}`);
    return found;
  }

  #peek(): Token | undefined {
    token.lastIndex = this.#at;
    const found = token.exec(this.#text)?.groups;
    if (found !== undefined) this.#at = token.lastIndex;
    return found;
  }
}

interface Token {
  readonly [part: string]: string | undefined;
}

function integer(digits: string): bigint {
  if (digits.length > mostDigits) throw new SyntaxError(`an integer of ${digits.length} digits`);
  return BigInt(digits);
}
