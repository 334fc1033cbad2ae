/** Arithmetic, comparison and membership with Python's rules. */
import { pow } from '../../core/math/pow.ts';
import { spend, spendOnText } from './budget.ts';
import { spendOn } from './cost.ts';
import { refuse } from './errors.ts';
import { formatPercent } from './format.ts';
import { iterate, iteratorOf } from './iterate.ts';
import { escapeHtml } from './markup.ts';
import { compareText } from './python-strings.ts';
import {
  Dict,
  DictView,
  Lazy,
  Markup,
  Tuple,
  Undefined,
  type Value,
  hashKey,
  numberOf,
  textOf,
  typeName,
} from './values.ts';

export type BinaryOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**';

/** Largest integer, about 20,000 digits. Python has no limit, but a power of a power would fill the memory. */
const maxIntegerBits = 1 << 16;

export function binary(operator: BinaryOperator, left: Value, right: Value): Value {
  if (left instanceof Undefined) return left.fail();
  if (right instanceof Undefined && !(operator === '%' && textOf(left) !== undefined)) return right.fail();
  const a = numberOf(left);
  const b = numberOf(right);
  if (a !== undefined && b !== undefined) return arithmetic(operator, a, b);
  if (operator === '+') return add(left, right);
  if (operator === '*') {
    if (a !== undefined && typeof a === 'bigint') return repeat(right, a, left);
    if (b !== undefined && typeof b === 'bigint') return repeat(left, b, right);
  }
  const text = textOf(left);
  if (operator === '%' && text !== undefined) return formatPercent(text, right);
  return unsupported(operator, left, right);
}

function add(left: Value, right: Value): Value {
  spendOn(Array.isArray(left) || left instanceof Tuple ? left : right);
  if (left instanceof Markup || right instanceof Markup) {
    const [a, b] = [textOf(left), textOf(right)];
    if (a !== undefined && b !== undefined) return new Markup(escapeHtml(left) + escapeHtml(right));
  }
  if (typeof left === 'string') {
    return typeof right === 'string'
      ? left + right
      : refuse(`can only concatenate str (not "${typeName(right)}") to str`);
  }
  if (Array.isArray(left))
    return Array.isArray(right)
      ? [...left, ...right]
      : refuse(`can only concatenate list (not "${typeName(right)}") to list`);
  if (left instanceof Tuple) {
    return right instanceof Tuple
      ? new Tuple([...left.items, ...right.items])
      : refuse(`can only concatenate tuple (not "${typeName(right)}") to tuple`);
  }
  return unsupported('+', left, right);
}

function repeat(value: Value, times: bigint, other: Value): Value {
  const count = times < 0n ? 0 : Number(times);
  const size =
    textOf(value)?.length ??
    (Array.isArray(value) ? value.length : value instanceof Tuple ? value.items.length : undefined);
  if (size === undefined) return unsupported('*', value, other);
  if (textOf(value) === undefined) spend(size * count);
  else spendOnText(size * count);
  if (typeof value === 'string') return value.repeat(count);
  if (value instanceof Markup) return new Markup(value.text.repeat(count));
  const items = Array.isArray(value) ? value : [...(value as Tuple).items];
  const many = Array.from({ length: count }, () => items).flat(1);
  return Array.isArray(value) ? many : new Tuple(many);
}

function arithmetic(operator: BinaryOperator, a: bigint | number, b: bigint | number): Value {
  if (typeof a === 'bigint' && typeof b === 'bigint') return integer(operator, a, b);
  const [x, y] = [Number(a), Number(b)];
  if (operator === '+') return x + y;
  if (operator === '-') return x - y;
  if (operator === '*') return x * y;
  if (operator === '**') return power(x, y);
  if (y === 0)
    return refuse(
      operator === '/' ? 'float division by zero' : operator === '%' ? 'float modulo' : 'float floor division by zero',
    );
  if (operator === '/') return x / y;
  const remainder = x % y;
  const modulo = remainder !== 0 && remainder < 0 !== y < 0 ? remainder + y : remainder;
  return operator === '%' ? modulo : Math.round((x - modulo) / y);
}

function integer(operator: BinaryOperator, a: bigint, b: bigint): Value {
  if (operator === '+') return sized(a + b);
  if (operator === '-') return sized(a - b);
  if (operator === '*') return sized(a * b);
  if (operator === '**') return b < 0n ? power(Number(a), Number(b)) : integerPower(a, b);
  if (b === 0n) return refuse(operator === '/' ? 'division by zero' : 'integer division or modulo by zero');
  if (operator === '/') return Number(a) / Number(b);
  const remainder = a % b;
  const modulo = remainder !== 0n && remainder < 0n !== b < 0n ? remainder + b : remainder;
  return operator === '%' ? modulo : (a - modulo) / b;
}

function integerPower(a: bigint, b: bigint): bigint {
  if (a >= -1n && a <= 1n) return a === 0n && b > 0n ? 0n : b % 2n === 0n ? 1n : a;
  const bits = BigInt(a.toString(2).length - 1);
  return bits * b > BigInt(maxIntegerBits) ? refuse('the result of ** is too large') : sized(a ** b);
}

function sized(value: bigint): bigint {
  return BigInt.asIntN(maxIntegerBits, value) === value ? value : refuse('the integer is too large');
}

function power(x: number, y: number): number {
  if (x === 0 && y < 0) return refuse('0.0 cannot be raised to a negative power');
  const result = pow(x, y);
  return Number.isNaN(result) && !Number.isNaN(x) && !Number.isNaN(y)
    ? refuse('a negative number cannot be raised to a fractional power')
    : result;
}

export function negate(value: Value, sign: '-' | '+'): Value {
  if (value instanceof Undefined) return value.fail();
  const number = numberOf(value);
  if (number === undefined) return refuse(`bad operand type for unary ${sign}: '${typeName(value)}'`);
  return sign === '-' ? -number : number;
}

function unsupported(operator: string, left: Value, right: Value): never {
  return refuse(`unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`);
}

export function equal(a: Value, b: Value): boolean {
  spend(1); // Lists may share their parts, so comparing two small ones can take very long.
  const [x, y] = [numberOf(a), numberOf(b)];
  // biome-ignore lint/suspicious/noDoubleEquals: an integer may be a bigint, and 1n == 1 as in Python.
  if (x !== undefined && y !== undefined) return x == y;
  const [s, t] = [textOf(a), textOf(b)];
  if (s !== undefined || t !== undefined) return s === t;
  if (Array.isArray(a)) return Array.isArray(b) && equalItems(a, b);
  if (a instanceof Tuple) return b instanceof Tuple && equalItems(a.items, b.items);
  if (a instanceof Dict) return b instanceof Dict && equalDicts(a, b);
  return a === b || (a instanceof Undefined && b instanceof Undefined);
}

function equalItems(a: readonly Value[], b: readonly Value[]): boolean {
  return a.length === b.length && a.every((item, i) => equal(item, b[i] as Value));
}

function equalDicts(a: Dict, b: Dict): boolean {
  if (a.length() !== b.length()) return false;
  return a.entries().every(([key, value]) => {
    const other = b.get(key);
    return other !== undefined && equal(value, other);
  });
}

export type OrderOperator = '<' | '<=' | '>' | '>=';

export function ordered(operator: OrderOperator, a: Value, b: Value): boolean {
  const order = compare(a, b, operator);
  if (operator === '<') return order < 0;
  if (operator === '<=') return order <= 0;
  return operator === '>' ? order > 0 : order >= 0;
}

/** Negative, zero or positive; NaN when a float is NaN. Throws for values that Python cannot order. */
export function compare(a: Value, b: Value, operator: OrderOperator = '<'): number {
  if (a instanceof Undefined) return a.fail();
  if (b instanceof Undefined) return b.fail();
  const [x, y] = [numberOf(a), numberOf(b)];
  // biome-ignore lint/suspicious/noDoubleEquals: an integer may be a bigint, and 1n == 1 as in Python.
  if (x !== undefined && y !== undefined) return x < y ? -1 : x > y ? 1 : x == y ? 0 : NaN;
  const [s, t] = [textOf(a), textOf(b)];
  if (s !== undefined && t !== undefined) return compareText(s, t);
  if (Array.isArray(a) && Array.isArray(b)) return compareItems(a, b, operator);
  if (a instanceof Tuple && b instanceof Tuple) return compareItems(a.items, b.items, operator);
  return refuse(`'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

function compareItems(a: readonly Value[], b: readonly Value[], operator: OrderOperator): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (!equal(a[i] as Value, b[i] as Value)) return compare(a[i] as Value, b[i] as Value, operator);
  }
  return a.length - b.length;
}

export function contains(container: Value, item: Value): boolean {
  const text = textOf(container);
  if (text !== undefined) {
    const part = textOf(item);
    if (item instanceof Undefined && part === undefined)
      return refuse("'in <string>' requires string as left operand, not Undefined");
    return part === undefined
      ? refuse(`'in <string>' requires string as left operand, not ${typeName(item)}`)
      : text.includes(part);
  }
  if (container instanceof Dict) return container.get(item) !== undefined;
  if (container instanceof DictView && container.typeName === 'dict_keys')
    return container.items.some((key) => hashKey(key) === hashKey(item));
  if (iteratorOf(container) === undefined) return refuse(`argument of type '${typeName(container)}' is not iterable`);
  const iterator = iterate(container);
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) if (equal(next.value, item)) return true;
  return false;
}

/** Is it the same object? Equal small ints and equal strings count as the same. */
export function same(a: Value, b: Value): boolean {
  if (a instanceof Lazy || b instanceof Lazy || Array.isArray(a)) return a === b;
  return typeName(a) === typeName(b) && (a === b || (typeof a !== 'object' && Object.is(a, b)));
}
