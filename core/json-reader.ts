/**
 * Reads JSON that `JSON.parse` would change or refuse. The caller says what numbers and objects become, and which words
 * there are.
 */

/** What becomes of the parts of a text that are no list, string, true, false or null. */
export interface JsonForms<T> {
  /** Words beside true, false and null. */
  readonly words?: Readonly<Record<string, T>>;
  /** A number without point and exponent, with its sign. */
  readonly integer: (text: string) => T;
  readonly float: (text: string) => T;
  /** A key that occurs twice has its last value, at its first place. */
  readonly object: (entries: Map<string, JsonValue<T>>) => T;
}

/** What a text becomes: T is what its numbers, objects and words become. */
export type JsonValue<T> = T | null | boolean | string | readonly JsonValue<T>[];

/** Throws SyntaxError. */
export function readJson<T>(text: string, forms: JsonForms<T>): JsonValue<T> {
  return new Reader(text, forms).read();
}

/**
 * The end of the string that starts here; undefined where none starts, or it has no end. It is searched without a
 * regular expression for the whole string, which would run out of stack on megabytes.
 */
export function endOfString(text: string, start: number): number | undefined {
  if (text[start] !== '"') return undefined;
  for (let at = start + 1; ; at += 2) {
    quoteOrBackslash.lastIndex = at;
    const found = quoteOrBackslash.exec(text);
    if (found === null) return undefined;
    at = found.index;
    if (found[0] === '"') return at + 1;
  }
}

const number = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const quoteOrBackslash = /["\\]/g;
const blank = /[ \t\n\r]*/y;
const word = /-?[A-Za-z]+/y;
const usualWords: ReadonlyMap<string, null | boolean> = new Map([
  ['null', null],
  ['true', true],
  ['false', false],
] as const);

/** Deepest nesting read. */
const maxDepth = 1000;

/**
 * Longest integer, in digits. The same limit as Python's json, because the time grows with the square of the length.
 */
const maxDigits = 4300;

class Reader<T> {
  readonly #text: string;
  readonly #forms: JsonForms<T>;
  readonly #words: ReadonlyMap<string, T | null | boolean>;
  #at = 0;

  constructor(text: string, forms: JsonForms<T>) {
    this.#text = text;
    this.#forms = forms;
    this.#words =
      forms.words === undefined
        ? usualWords
        : new Map<string, T | null | boolean>([...usualWords, ...Object.entries(forms.words)]);
  }

  read(): JsonValue<T> {
    const value = this.#value(0);
    this.#take(blank);
    if (this.#at !== this.#text.length) throw this.#fail();
    return value;
  }

  #value(depth: number): JsonValue<T> {
    if (depth > maxDepth) throw new SyntaxError(`JSON nested deeper than ${maxDepth}`);
    this.#take(blank);
    const first = this.#text[this.#at];
    if (first === '{') return this.#object(depth);
    if (first === '[') return this.#list(depth);
    if (first === '"') return this.#string();
    const known = this.#word();
    return known === undefined ? this.#number() : known;
  }

  #word(): T | null | boolean | undefined {
    word.lastIndex = this.#at;
    const found = word.exec(this.#text)?.[0] ?? '';
    const value = this.#words.get(found);
    if (value !== undefined) this.#at += found.length;
    return value;
  }

  #number(): T {
    number.lastIndex = this.#at;
    const match = number.exec(this.#text);
    if (match === null) throw this.#fail();
    this.#at += match[0].length;
    if (match[1] !== undefined || match[2] !== undefined) return this.#forms.float(match[0]);
    if (match[0].length > maxDigits) throw new SyntaxError(`JSON has an integer of more than ${maxDigits} digits`);
    return this.#forms.integer(match[0]);
  }

  #string(): string {
    const end = endOfString(this.#text, this.#at);
    if (end === undefined) throw this.#fail();
    const text = JSON.parse(this.#text.slice(this.#at, end)) as string;
    this.#at = end;
    return text;
  }

  #list(depth: number): JsonValue<T>[] {
    const items: JsonValue<T>[] = [];
    this.#at++;
    if (this.#skip(']')) return items;
    do items.push(this.#value(depth + 1));
    while (this.#skip(','));
    if (!this.#skip(']')) throw this.#fail();
    return items;
  }

  #object(depth: number): T {
    const entries = new Map<string, JsonValue<T>>();
    this.#at++;
    if (this.#skip('}')) return this.#forms.object(entries);
    do {
      this.#take(blank);
      const key = this.#string();
      if (!this.#skip(':')) throw this.#fail();
      entries.set(key, this.#value(depth + 1));
    } while (this.#skip(','));
    if (!this.#skip('}')) throw this.#fail();
    return this.#forms.object(entries);
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
