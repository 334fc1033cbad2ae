/** The value side of an override. A small recursive-descent parser over `source` from position `at`. */
import { overrideError } from './override-error.ts';

/** Parses everything from `start` to the end of `source` as one value. */
export function parseOverrideValue(source: string, start: number): unknown {
  const cursor = { source, at: start, depth: 0 };
  skipBlanks(cursor);
  if (cursor.at === source.length) return '';
  const opener = source[cursor.at] ?? '';
  if (!`[{'"`.includes(opener)) return scalar(source.slice(cursor.at).trim());
  const value = parseValue(cursor);
  skipBlanks(cursor);
  if (cursor.at < source.length) throw overrideError(source, cursor.at, 'expected the end');
  return value;
}

interface Cursor {
  readonly source: string;
  at: number;
  /** Lists and mappings around this place. */
  depth: number;
}

const mostDepth = 100;

function parseValue(cursor: Cursor): unknown {
  if (cursor.depth >= mostDepth) throw overrideError(cursor.source, cursor.at, `expected at most ${mostDepth} levels`);
  cursor.depth += 1;
  const value = parseOne(cursor);
  cursor.depth -= 1;
  return value;
}

function parseOne(cursor: Cursor): unknown {
  skipBlanks(cursor);
  switch (cursor.source[cursor.at]) {
    case '[':
      return parseList(cursor);
    case '{':
      return parseMapping(cursor);
    case '"':
    case "'":
      return parseQuoted(cursor);
    default:
      return scalar(bareWord(cursor));
  }
}

function parseList(cursor: Cursor): unknown[] {
  const items: unknown[] = [];
  cursor.at += 1;
  if (takes(cursor, ']')) return items;
  for (;;) {
    items.push(parseValue(cursor));
    if (takes(cursor, ']')) return items;
    expect(cursor, ',', '"," or "]"');
  }
}

function parseMapping(cursor: Cursor): Record<string, unknown> {
  const entries: [string, unknown][] = [];
  cursor.at += 1;
  if (takes(cursor, '}')) return {};
  for (;;) {
    skipBlanks(cursor);
    const quoted = `'"`.includes(cursor.source[cursor.at] ?? ' ');
    const name = quoted ? parseQuoted(cursor) : bareWord(cursor);
    expect(cursor, ':', '":"');
    entries.push([name, parseValue(cursor)]);
    if (takes(cursor, '}')) return Object.fromEntries(entries);
    expect(cursor, ',', '"," or "}"');
  }
}

/** Reads text in quotes: a backslash escapes only the quote and the backslash; other characters are literal. */
function parseQuoted(cursor: Cursor): string {
  const { source } = cursor;
  const opened = cursor.at;
  const quote = source[opened] ?? '';
  let text = '';
  for (cursor.at += 1; cursor.at < source.length; cursor.at += 1) {
    const char = source[cursor.at] ?? '';
    const next = source[cursor.at + 1];
    if (char === quote) {
      cursor.at += 1;
      return text;
    }
    if (char === '\\' && (next === quote || next === '\\')) {
      text += next;
      cursor.at += 1;
    } else {
      text += char;
    }
  }
  throw overrideError(source, opened, `expected a closing ${quote}`);
}

function bareWord(cursor: Cursor): string {
  const word = /^[^,[\]{}:'"]*/.exec(cursor.source.slice(cursor.at))?.[0] ?? '';
  const begin = cursor.at;
  cursor.at += word.length;
  if (word.trim() === '') throw overrideError(cursor.source, begin, 'expected a value');
  return word.trim();
}

/** A plain scalar as in YAML 1.2: `on` and `no` are texts, `1e-6` is a number. */
function scalar(word: string): unknown {
  if (word === 'true' || word === 'True') return true;
  if (word === 'false' || word === 'False') return false;
  if (word === 'null' || word === 'None') return null;
  return /^[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/.test(word) ? Number(word.replaceAll('_', '')) : word;
}

function takes(cursor: Cursor, char: string): boolean {
  skipBlanks(cursor);
  if (cursor.source[cursor.at] !== char) return false;
  cursor.at += 1;
  return true;
}

function expect(cursor: Cursor, char: string, what: string): void {
  if (!takes(cursor, char)) throw overrideError(cursor.source, cursor.at, `expected ${what}`);
}

function skipBlanks(cursor: Cursor): void {
  while (cursor.source[cursor.at] === ' ') cursor.at += 1;
}
