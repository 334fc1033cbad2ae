/** A value with its percent sign and unit: `\$1,234.50`, `5 \text{ cm}^2`, `50\%`, `101_2`. */
import type { Expression } from './algebra.ts';
import * as algebra from './algebra.ts';
import * as q from './fraction.ts';
import { readFormula } from './formula.ts';

export interface Quantity {
  readonly value: Expression;
  readonly isPercent: boolean;
  /** The unit in lower case and singular; empty without one. `base 2` for a number with a base. */
  readonly unit: string;
  /** Is the number written as its result: 12, −1.5, 3/4, 7 3/4, 3·10^8? 2^10, √49 and 6/4 are calculations. */
  readonly isResult: boolean;
}

const thousands = /^([-+]?\d{1,3})((?:,\d{3})+)(\.\d+)?$/;
const scientific = /^([-+]?)(\d+(?:\.\d+)?)[eE]([-+]?\d{1,3})$/;
const withBase = /^(\d+)_\{?(\d+)\}?$/;
const power = String.raw`(\s*\^\s*\{?\d\}?)?`;
const textUnit = new RegExp(String.raw`\\text\s*\{([^{}]*)\}${power}\s*$`);
/** Words after a number, a brace or a parenthesis. Words of two letters must be known, since they may be variables. */
const plainUnit = new RegExp(
  String.raw`(?<=[\d)}]\s*)((?:cm|mm|km|kg|mg|ml|ft|in|oz|lb|hr|mi|mph|[a-zA-Z]{3,})(?:\s+[a-zA-Z]{2,})*)${power}\s*$`,
);
const noUnits = /^(?:sqrt|pi|inf|infinity|sin|cos|tan|log|ln|theta|alpha|beta|exp|abs)\b/;

/** @throws Unreadable, TooLarge, and RangeError for a division by 0. */
export function readQuantity(text: string): Quantity {
  const percent = /\s*(?:\\?%|\\text\s*\{\s*percent\s*\}|(?<=\d\s*)percent)\s*$/;
  const isPercent = percent.test(text);
  const { rest, unit } = withoutUnit(text.replace(percent, ''));
  const [, digits, base] = withBase.exec(rest) ?? [];
  if (digits !== undefined) return { value: readValue(digits), isPercent, unit: `base ${base}`, isResult: true };
  return { value: readValue(rest), isPercent, unit, isResult: isResult(rest) };
}

const decimal = /^[-+]?(?:\d+(?:\.\d+)?|\.\d+)$/;
const powerOfTen = /^[-+]?\d+(?:\.\d+)?(?:\\times|\\cdot|\*)10\^(?:\{-?\d+\}|\d+)$/;
const reducible = /^[-+]?(?:\d+(?:\s+|(?=\\)))?(?:\\frac\{?(-?\d+)\}?\{?(\d+)\}?|(\d+)\/(\d+))$/;

function isResult(text: string): boolean {
  const compact = text.replace(/\s*([-+/{}\\])\s*/g, '$1');
  if (decimal.test(compact) || scientific.test(compact) || withoutThousands(compact) !== undefined) return true;
  if (powerOfTen.test(text.replace(/\s+/g, ''))) return true;
  const shortFraction = /\\frac\s*(\d)\s*(\d)$/.exec(compact);
  const [, a, b, c, d] = reducible.exec(compact) ?? [];
  const [top, bottom] = shortFraction === null ? [a ?? c, b ?? d] : [shortFraction[1], shortFraction[2]];
  if (top === undefined || bottom === undefined) return false;
  return bottom !== '1' && q.fraction(BigInt(top), BigInt(bottom)).d === BigInt(bottom);
}

/** The number of a text such as 1,234,567; undefined for others. */
export function withoutThousands(text: string): string | undefined {
  const found = thousands.exec(text.trim());
  return found === null ? undefined : `${found[1]}${(found[2] ?? '').replaceAll(',', '')}${found[3] ?? ''}`;
}

export function withoutUnit(text: string): { readonly rest: string; readonly unit: string } {
  const money = /^\s*([-+]?)\s*(?:\\\$|[€£¥])\s*|\s*(?:\\\$|[€£¥])\s*$/;
  if (money.test(text)) return { rest: text.replace(money, '$1').trim(), unit: 'dollar' };
  if (/\\degree\s*$/.test(text)) return { rest: text.replace(/\\degree\s*$/, '').trim(), unit: 'degree' };
  const found = textUnit.exec(text) ?? plainUnit.exec(text);
  if (found === null || found.index === 0 || noUnits.test(found[1] ?? '')) return { rest: text.trim(), unit: '' };
  const exponent = (found[2] ?? '').replace(/[^\d]/g, '');
  return { rest: text.slice(0, found.index).trim(), unit: unitName(found[1] ?? '') + exponent };
}

function unitName(text: string): string {
  const name = text.toLowerCase().replace(/[\s.]+/g, '');
  return name.length > 3 && name.endsWith('s') ? name.slice(0, -1) : name;
}

function readValue(text: string): Expression {
  const [, sign, digits = '', exponent = ''] = scientific.exec(text) ?? [];
  if (sign === undefined) return readFormula(withoutThousands(text) ?? text);
  const ten = algebra.number(q.fraction(10n));
  const scale = algebra.power(ten, algebra.number(q.fraction(BigInt(exponent))));
  const value = algebra.multiply(algebra.number(q.fromDecimal(digits)), scale);
  return sign === '-' ? algebra.negate(value) : value;
}

export interface Comparison {
  /** Relative, for numbers; 0 compares exactly. */
  readonly tolerance: number;
  /** May an answer be a calculation where the ground truth is a result? */
  readonly calculations: boolean;
}

/**
 * When the ground truth is a result, the answer must be one too, else a response could repeat the question's
 * calculation. A unit may be missing on one side. A percent sign on one side only may mean the number without it, or a
 * hundredth: 50 % equals 50 and 0.5.
 */
export function areEqualQuantities(given: Quantity, truth: Quantity, rules: Comparison): boolean {
  const { tolerance, calculations } = rules;
  if (truth.isResult && !given.isResult && !calculations) return false;
  const [a, b] = [given, truth].map(({ unit, isPercent }) => (isPercent ? `percent ${unit}` : unit));
  if (given.unit !== truth.unit && a !== '' && b !== '') return false;
  if (areEqualValues(given.value, truth.value, tolerance)) return true;
  if (given.isPercent === truth.isPercent) return false;
  const hundredth = algebra.number(q.fraction(1n, 100n));
  return given.isPercent
    ? areEqualValues(algebra.multiply(given.value, hundredth), truth.value, tolerance)
    : areEqualValues(given.value, algebra.multiply(truth.value, hundredth), tolerance);
}

export function areEqualValues(given: Expression, truth: Expression, tolerance: number): boolean {
  if (algebra.areEqual(given, truth)) return true;
  if (tolerance === 0) return false;
  const [x, y] = [algebra.numeric(given), algebra.numeric(truth)];
  return x !== undefined && y !== undefined && Math.abs(x - y) <= tolerance * Math.abs(y);
}
