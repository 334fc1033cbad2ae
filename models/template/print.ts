/** str() and repr() of every value, as Python prints them. */
import { spend } from './budget.ts';
import { codePoints } from './python-strings.ts';
import { Dict, DictView, Markup, Tuple, Undefined, type Value } from './values.ts';

/** The text that `{{ value }}` prints. */
export function str(value: Value): string {
  if (typeof value === 'string') return value;
  if (value instanceof Markup) return value.text;
  return value instanceof Undefined ? '' : repr(value);
}

export function repr(value: Value): string {
  spend(1); // Lists can contain the same list many times at each level, so the text can be very long.
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return floatRepr(value);
  if (typeof value === 'string') return textRepr(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(', ')}]`;
  if (value instanceof Markup) return `Markup(${textRepr(value.text)})`;
  if (value instanceof Tuple)
    return value.items.length === 1 ? `(${repr(value.items[0] as Value)},)` : `(${value.items.map(repr).join(', ')})`;
  if (value instanceof Dict)
    return `{${value
      .entries()
      .map(([key, item]) => `${repr(key)}: ${repr(item)}`)
      .join(', ')}}`;
  if (value instanceof DictView) return `${value.typeName}([${value.items.map(repr).join(', ')}])`;
  return value.repr();
}

/** The shortest digits that read back as the same number; with an exponent from 1e16 up and below 1e-4. */
export function floatRepr(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa = '0', power = '0'] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    const point = digits.length > 1 ? `${digits[0]}.${digits.slice(1)}` : digits;
    return `${sign}${point}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.padEnd(exponent + 1, '0');
  return `${sign}${whole.slice(0, exponent + 1)}.${whole.slice(exponent + 1) || '0'}`;
}

const named: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const unprintable = /[\p{C}\p{Z}]/u;

/** Single quotes, unless the text contains some and no double ones. */
function textRepr(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const shown = codePoints(text).map((point) => {
    if (point === quote) return `\\${point}`;
    const known = named[point];
    if (known !== undefined) return known;
    return point !== ' ' && unprintable.test(point) ? escapePoint(point) : point;
  });
  return `${quote}${shown.join('')}${quote}`;
}

function escapePoint(point: string): string {
  const code = point.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}
