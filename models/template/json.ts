/** json.dumps with the settings of transformers' `tojson` filter: no HTML escaping, and non-ASCII characters stay. */
import { spend, spendOnText } from './budget.ts';
import { refuse } from './errors.ts';
import { floatRepr } from './print.ts';
import { compareText } from './python-strings.ts';
import { Dict, Tuple, type Value, numberOf, textOf, typeName, none } from './values.ts';

export interface JsonStyle {
  readonly ensureAscii: boolean;
  /** Indentation of one level; undefined means one line. */
  readonly indent: string | undefined;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly sortKeys: boolean;
}

export function toJson(value: Value, style: JsonStyle, level = 0): string {
  spend(1); // Lists can contain the same list many times at each level, so the text can be very long.
  if (value === none) return 'null';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return jsonFloat(value);
  const text = textOf(value);
  if (text !== undefined) return quote(text, style.ensureAscii);
  if (Array.isArray(value))
    return block(
      '[',
      ']',
      value.map((item) => toJson(item, style, level + 1)),
      style,
      level,
    );
  if (value instanceof Tuple)
    return block(
      '[',
      ']',
      value.items.map((item) => toJson(item, style, level + 1)),
      style,
      level,
    );
  if (value instanceof Dict) {
    const entries = value.entries().map(([key, item]) => [jsonKey(key), item, key] as const);
    if (style.sortKeys) entries.sort(([a], [b]) => compareText(a, b));
    const lines = entries.map(
      ([key, item]) => `${quote(key, style.ensureAscii)}${style.keySeparator}${toJson(item, style, level + 1)}`,
    );
    return block('{', '}', lines, style, level);
  }
  return refuse(`Object of type ${typeName(value)} is not JSON serializable`);
}

function block(open: string, close: string, lines: readonly string[], style: JsonStyle, level: number): string {
  if (lines.length === 0) return open + close;
  if (style.indent === undefined) return open + lines.join(style.itemSeparator) + close;
  const outer = `\n${style.indent.repeat(level)}`;
  const inner = outer + style.indent;
  return open + inner + lines.join(style.itemSeparator + inner) + outer + close;
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  return floatRepr(value);
}

function jsonKey(key: Value): string {
  const text = textOf(key);
  if (text !== undefined) return text;
  if (key === none) return 'null';
  if (typeof key === 'boolean') return String(key);
  const number = numberOf(key);
  if (number === undefined) return refuse(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
  return typeof number === 'bigint' ? String(number) : jsonFloat(number);
}

const short: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
};

function quote(text: string, ensureAscii: boolean): string {
  spendOnText(text.length);
  const special = ensureAscii ? /["\\\x00-\x1f\x7f-\uffff]/g : /["\\\x00-\x1f]/g;
  const escaped = text.replace(special, (unit) => {
    if (unit === '\x7f') return unit;
    return short[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return `"${escaped}"`;
}
