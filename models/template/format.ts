/** printf-style `%` formatting and `str.format`, as far as templates use them. */
import { toFixedEven } from './decimal.ts';
import { refuse } from './errors.ts';
import { floatRepr, repr, str } from './print.ts';
import { lengthOf, slicePoints } from './python-strings.ts';
import { Dict, type Keywords, Tuple, Undefined, type Value, numberOf, textOf, typeName, none } from './values.ts';

const directive = /%(?:\(([^()]*)\))?([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?[hlL]?(.)/gs;

/** `text % values`: a tuple gives several values, a dict gives them by name. */
export function formatPercent(text: string, values: Value): string {
  const queue = values instanceof Tuple ? [...values.items] : [values];
  // Python checks that all values were used only for tuples and for values without items.
  let used = Array.isArray(values) || values instanceof Dict || values instanceof Undefined;
  const next = (): Value => {
    used = true;
    return queue.shift() ?? (queue.length === 0 ? refuse('not enough arguments for format string') : none);
  };
  const shown = text.replace(directive, (...match: (string | undefined)[]) => {
    const [, name, flags = '', width, precision, type = ''] = match;
    if (type === '%') return '%';
    const wide = width === '*' ? Number(numberOf(next())) : width === undefined ? 0 : Number(width);
    const digits =
      precision === '*' ? Number(numberOf(next())) : precision === undefined ? undefined : Number(precision);
    const value = name === undefined ? next() : named(values, name);
    return layOut(
      convert(type, value, digits, flags),
      wide,
      flags.includes('-') ? '<' : '>',
      flags.includes('0') && !flags.includes('-') ? '0' : ' ',
    );
  });
  if (!used && queue.length > 0 && values instanceof Tuple && values.items.length === 0) return shown;
  if (values instanceof Tuple ? queue.length > 0 : !used)
    return refuse('not all arguments converted during string formatting');
  return shown;
}

function named(values: Value, name: string): Value {
  if (!(values instanceof Dict)) return refuse('format requires a mapping');
  return values.get(name) ?? refuse(`KeyError: ${repr(name)}`);
}

function convert(type: string, value: Value, precision: number | undefined, flags: string): string {
  if (type === 's' || type === 'r' || type === 'a') {
    const text = type === 's' ? str(value) : repr(value);
    return precision === undefined ? text : slicePoints(text, 0, precision);
  }
  if (value instanceof Undefined) return value.fail();
  const number = numberOf(value);
  if (type === 'c') return typeof number === 'bigint' ? String.fromCodePoint(Number(number)) : str(value);
  if (number === undefined) return refuse(`%${type} format: a real number is required, not ${typeName(value)}`);
  return signed(formatNumber(type, number, precision), flags);
}

function signed(text: string, flags: string): string {
  if (text.startsWith('-')) return text;
  return flags.includes('+') ? `+${text}` : flags.includes(' ') ? ` ${text}` : text;
}

/** A number under a type letter of Python's mini-language. */
function formatNumber(type: string, number: bigint | number, precision: number | undefined): string {
  const whole = typeof number === 'bigint' ? number : undefined;
  switch (type) {
    case 'd':
    case 'i':
    case 'u':
      return String(whole ?? BigInt(Math.trunc(Number(number))));
    case 'x':
      return (whole ?? refuse('%x format: an integer is required, not float')).toString(16);
    case 'X':
      return (whole ?? refuse('%X format: an integer is required, not float')).toString(16).toUpperCase();
    case 'o':
      return (whole ?? refuse('%o format: an integer is required, not float')).toString(8);
    case 'b':
      return (whole ?? refuse('an integer is required, not float')).toString(2);
    case 'f':
    case 'F':
      return toFixedEven(Number(number), precision ?? 6);
    case '%':
      return `${toFixedEven(Number(number) * 100, precision ?? 6)}%`;
    case 'e':
    case 'E':
      return exponent(Number(number).toExponential(precision ?? 6), type);
    case 'g':
    case 'G':
      return general(Number(number), precision ?? 6);
    default:
      return refuse(`unsupported format character '${type}'`);
  }
}

function exponent(text: string, type: string): string {
  const shown = text.replace(/e([+-])(\d)$/, 'e$10$2');
  return type === 'E' ? shown.toUpperCase() : shown;
}

function general(number: number, precision: number): string {
  const digits = Math.max(precision, 1);
  const power = Number(number.toExponential(digits - 1).split('e')[1]);
  if (power < -4 || power >= digits) return exponent(number.toExponential(digits - 1).replace(/\.?0+e/, 'e'), 'e');
  const fixed = number.toFixed(Math.max(0, digits - 1 - power));
  return fixed.includes('.') ? fixed.replace(/\.?0+$/, '') : fixed;
}

/** Pads to a width: `<` left, `>` right, `^` centred, `=` after the sign. */
function layOut(text: string, width: number, align: string, fill: string): string {
  const room = width - lengthOf(text);
  if (room <= 0) return text;
  if (align === '<') return text + fill.repeat(room);
  if (align === '^') return fill.repeat(Math.floor(room / 2)) + text + fill.repeat(room - Math.floor(room / 2));
  const sign = (align === '=' || fill === '0') && /^[+-]/.test(text) ? text.slice(0, 1) : '';
  return sign + fill.repeat(room) + text.slice(sign.length);
}

/**
 * Reads `{0.name}` and `{0[key]}` from a value. attributes.ts passes this function, because methods of text are
 * attributes, too.
 */
export interface Access {
  readonly getAttribute: (value: Value, name: string) => Value;
  readonly getItem: (value: Value, key: Value) => Value;
}

/** The values that a format string may name. */
export interface FormatArguments {
  readonly args: readonly Value[];
  readonly keywords: Keywords;
}

/** `text.format(*args, **keywords)`. */
export function formatBraces(text: string, given: FormatArguments, access: Access): string {
  let automatic = 0;
  return text.replace(
    /\{\{|\}\}|\{([^{}!:]*)(?:!([rsa]))?(?::((?:[^{}]|\{[^{}]*\})*))?\}|[{}]/g,
    (...match: (string | undefined)[]) => {
      const [all = '', field, conversion, spec = ''] = match;
      if (all === '{{' || all === '}}') return all.slice(1);
      if (field === undefined) return refuse(`Single '${all}' encountered in format string`);
      const value = lookUp(field === '' || /^[.[]/.test(field) ? `${automatic++}${field}` : field, given, access);
      const shown = conversion === undefined ? value : conversion === 's' ? str(value) : repr(value);
      const inner = spec.replace(/\{([^{}]*)\}/g, (_, name: string) =>
        str(lookUp(name === '' ? String(automatic++) : name, given, access)),
      );
      return formatSpec(shown, inner);
    },
  );
}

function lookUp(field: string, { args, keywords }: FormatArguments, access: Access): Value {
  const [first = ''] = /^[^.[]*/.exec(field) ?? [];
  const start = /^\d+$/.test(first)
    ? (args[Number(first)] ?? refuse('Replacement index out of range for positional args tuple'))
    : (keywords.get(first) ?? refuse(`KeyError: ${repr(first)}`));
  let value: Value = start;
  for (const step of field.slice(first.length).matchAll(/\.([^.[]+)|\[([^\]]+)\]/g)) {
    if (step[1] !== undefined) value = access.getAttribute(value, step[1]);
    else value = access.getItem(value, /^\d+$/.test(step[2] ?? '') ? BigInt(step[2] ?? '0') : (step[2] ?? ''));
  }
  return value;
}

function formatSpec(value: Value, spec: string): string {
  if (spec === '') return str(value);
  const match = /^(?:(.)?([<>=^]))?([+\- ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/su.exec(spec);
  if (match === null) return refuse(`Invalid format specifier '${spec}'`);
  const [, fill, align, sign = '', , zero, width = '0', comma, precision, type] = match;
  const digits = precision === undefined ? undefined : Number(precision);
  const number = typeof value === 'boolean' && type === undefined ? undefined : numberOf(value);
  if (number === undefined) {
    const text = str(value);
    if (type !== undefined && type !== 's')
      return refuse(`Unknown format code '${type}' for object of type '${typeName(value)}'`);
    return layOut(
      digits === undefined || textOf(value) === undefined ? text : slicePoints(text, 0, digits),
      Number(width),
      align ?? '<',
      fill ?? ' ',
    );
  }
  let text = type === undefined ? plainNumber(number, digits) : formatNumber(type === 'n' ? 'd' : type, number, digits);
  if (comma !== undefined)
    text = text.replace(
      /^(-?)(\d+)/,
      (_, minus: string, whole: string) => minus + whole.replace(/\B(?=(\d{3})+$)/g, comma),
    );
  return layOut(
    signed(text, sign),
    Number(width),
    align ?? (zero === undefined ? '>' : '='),
    fill ?? (zero === undefined ? ' ' : '0'),
  );
}

function plainNumber(number: bigint | number, digits: number | undefined): string {
  if (typeof number === 'bigint') return String(number);
  return digits === undefined ? floatRepr(number) : general(number, digits);
}
