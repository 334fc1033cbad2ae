/** Filters that create or round numbers. */
import { pow } from '../../../core/math/pow.ts';
import { toFixedEven } from '../decimal.ts';
import { refuse } from '../errors.ts';
import { strip } from '../python-strings.ts';
import { flagArgument, integerArgument, textArgument } from '../signature.ts';
import { Undefined, type Value, numberOf, textOf, typeName } from '../values.ts';
import { type Filter, filter } from './filter.ts';

export const numberFilters: Readonly<Record<string, Filter>> = {
  abs: filter('abs', [], (value) => {
    const number = numberOf(value);
    if (number === undefined) return refuse(`bad operand type for abs(): '${typeName(value)}'`);
    return number < 0 || Object.is(number, -0) ? -number : number;
  }),
  int: filter(
    'int',
    ['default?', 'base?'],
    (value, [fallback = 0n, base]) => toInteger(value, integerArgument(base, 10)) ?? fallback,
  ),
  float: filter('float', ['default?'], (value, [fallback = 0]) => toFloat(value) ?? fallback),
  round: filter('round', ['precision?', 'method?'], (value, [precision, method]) =>
    round(value, integerArgument(precision, 0), textArgument(method) ?? 'common'),
  ),
  filesizeformat: filter('filesizeformat', ['binary?'], (value, [binary]) =>
    fileSize(toFloat(value) ?? refuse('filesizeformat: a number is required'), flagArgument(binary)),
  ),
};

/** Python refuses to read more digits than this, because it takes too long, unless the base is a power of two. */
const maxDigits = 4300;

/** Undefined where Python's int() fails with a ValueError or TypeError. */
function toInteger(value: Value, base: number): bigint | undefined {
  if (value instanceof Undefined) return value.fail();
  const text = textOf(value);
  if (text !== undefined) {
    const parsed = parseInteger(text, base);
    if (parsed !== undefined) return parsed;
    const float = parseFloatText(text);
    return float === undefined || !Number.isFinite(float) ? undefined : BigInt(Math.trunc(float));
  }
  const number = numberOf(value);
  if (typeof number !== 'number') return number;
  if (Number.isNaN(number)) return undefined;
  return Number.isFinite(number) ? BigInt(Math.trunc(number)) : refuse('cannot convert float infinity to integer');
}

function parseInteger(text: string, base: number): bigint | undefined {
  const match = /^([+-]?)(0[xob])?_?([0-9a-z]+(?:_[0-9a-z]+)*)$/i.exec(strip(text, undefined, 'both'));
  if (match === null) return undefined;
  const [, sign = '', prefix = '', digits = ''] = match;
  const given = { '0x': 16, '0o': 8, '0b': 2 }[prefix.toLowerCase()];
  if (given !== undefined && base !== 0 && base !== given) return undefined;
  const radix = given ?? (base === 0 ? 10 : base);
  if (digits.length > maxDigits && (radix & (radix - 1)) !== 0) return undefined;
  let result = 0n;
  for (const digit of digits.replaceAll('_', '')) {
    const amount = Number.parseInt(digit, 36);
    if (!(amount < radix)) return undefined;
    result = result * BigInt(radix) + BigInt(amount);
  }
  return sign === '-' ? -result : result;
}

function toFloat(value: Value): number | undefined {
  if (value instanceof Undefined) return value.fail();
  const text = textOf(value);
  if (text !== undefined) return parseFloatText(text);
  const number = numberOf(value);
  return number === undefined ? undefined : Number(number);
}

function parseFloatText(text: string): number | undefined {
  const bare = strip(text, undefined, 'both').toLowerCase();
  if (/^[+-]?(inf|infinity)$/.test(bare)) return bare.startsWith('-') ? -Infinity : Infinity;
  if (/^[+-]?nan$/.test(bare)) return NaN;
  const digits = '\\d+(?:_\\d+)*';
  if (!new RegExp(`^[+-]?(?:${digits}\\.?(?:${digits})?|\\.${digits})(?:e[+-]?${digits})?$`).test(bare))
    return undefined;
  return Number(bare.replaceAll('_', ''));
}

function round(value: Value, precision: number, method: string): Value {
  if (method !== 'common' && method !== 'ceil' && method !== 'floor')
    return refuse('method must be common, ceil or floor');
  const number = numberOf(value);
  if (number === undefined) return refuse(`type ${typeName(value)} doesn't define __round__ method`);
  if (method !== 'common') {
    const scale = pow(10, precision);
    const scaled = Number(number) * scale;
    return (method === 'ceil' ? Math.ceil(scaled) : Math.floor(scaled)) / scale;
  }
  if (typeof number === 'bigint') {
    if (precision >= 0) return number;
    return -precision > String(number).length ? 0n : roundInteger(number, 10n ** BigInt(-precision));
  }
  return Number.isFinite(number) ? roundFloat(number, precision) : number;
}

function roundFloat(number: number, precision: number): number {
  if (Math.abs(number) >= 1e21 || precision > 45) return number;
  if (precision < -22) return 0;
  if (precision < 0) return Number(roundInteger(BigInt(Math.round(number)), 10n ** BigInt(-precision)));
  return Number(toFixedEven(number, precision));
}

function roundInteger(number: bigint, unit: bigint): bigint {
  const remainder = ((number % unit) + unit) % unit;
  const down = number - remainder;
  const twice = remainder * 2n;
  const up = twice > unit || (twice === unit && (down / unit) % 2n !== 0n);
  return up ? down + unit : down;
}

function fileSize(bytes: number, binary: boolean): string {
  const base = binary ? 1024 : 1000;
  if (bytes === 1) return '1 Byte';
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
  const prefixes = binary
    ? ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB', 'ZiB', 'YiB']
    : ['kB', 'MB', 'GB', 'TB', 'PB', 'EB', 'ZB', 'YB'];
  const step = prefixes.findIndex((_, i) => bytes < pow(base, i + 2));
  const index = step < 0 ? prefixes.length - 1 : step;
  return `${((base * bytes) / pow(base, index + 2)).toFixed(1)} ${prefixes[index]}`;
}
