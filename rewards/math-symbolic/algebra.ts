/**
 * Exact arithmetic on expressions: quotients of sums of products of powers.
 *
 *   3·√2·x² / (y + 1)
 *
 * A product has a rational factor and powers of atoms: variables, constants (π, e, i), roots of primes (√6 = √2·√3, so
 * that each number has one form), and functions of canonical expressions. Roots of different primes are independent
 * over the rational numbers, so two sums are equal when their products are. Quotients are compared by cross
 * multiplication. The root of a sum is an atom of its own.
 *
 * Every operation throws TooLarge beyond the limits below, and RangeError for a division by 0.
 */
import { pow } from '../../core/math/pow.ts';
import * as q from './fraction.ts';
import type { Fraction } from './fraction.ts';

/** An expression that would take too long to compare. */
export class TooLarge extends Error {}

const MOST_PRODUCTS = 500;
const MOST_BITS = 20_000;
const LARGEST_PRIME = 100_000n;

/** Exponents by atom; primes have exponents between 0 and 1. */
type Powers = ReadonlyMap<string, Fraction>;
interface Product {
  readonly factor: Fraction;
  readonly powers: Powers;
}
/** Products by their powers, written out. No factor is 0. */
type Sum = ReadonlyMap<string, Product>;

export interface Expression {
  readonly top: Sum;
  readonly bottom: Sum;
}

export function number(value: Fraction): Expression {
  return expression([{ factor: value, powers: new Map() }]);
}

/** A variable, or a constant: `pi`, `e`, `i`. A function of something is an atom, too: `sin(1*x)`. */
export function atom(name: string): Expression {
  return expression([{ factor: q.ONE, powers: new Map([[name, q.ONE]]) }]);
}

export function add(a: Expression, b: Expression): Expression {
  if (areSameSums(a.bottom, b.bottom)) return { top: sum([...a.top.values(), ...b.top.values()]), bottom: a.bottom };
  const top = sum([...times(a.top, b.bottom).values(), ...times(b.top, a.bottom).values()]);
  return { top, bottom: times(a.bottom, b.bottom) };
}

export function negate(a: Expression): Expression {
  return multiply(a, number(q.fraction(-1n)));
}

export function multiply(a: Expression, b: Expression): Expression {
  return { top: times(a.top, b.top), bottom: times(a.bottom, b.bottom) };
}

export function divide(a: Expression, b: Expression): Expression {
  if (b.top.size === 0) throw new RangeError('division by 0');
  return simplified(times(a.top, b.bottom), times(a.bottom, b.top));
}

export function areEqual(a: Expression, b: Expression): boolean {
  return areSameSums(times(a.top, b.bottom), times(b.top, a.bottom));
}

/** b = f·a for a rational f: f, or undefined when there is none. */
export function ratio(a: Expression, b: Expression): Fraction | undefined {
  const [left, right] = [times(a.top, b.bottom), times(b.top, a.bottom)];
  const [key, product] = [...left][0] ?? [];
  const other = key === undefined ? undefined : right.get(key);
  if (product === undefined || other === undefined) return undefined;
  const factor = q.multiply(other.factor, q.inverse(product.factor));
  const scaled = times(left, sum([{ factor, powers: new Map() }]));
  return areSameSums(scaled, right) ? factor : undefined;
}

/** The rational number, if the expression is one. */
export function rational({ top, bottom }: Expression): Fraction | undefined {
  if (top.size === 0) return q.ZERO;
  const [product] = top.values();
  if (!isOne(bottom) || top.size > 1 || product === undefined || product.powers.size > 0) return undefined;
  return product.factor;
}

const constants = ['pi', 'e', 'i', 'inf'];

/** Letters with or without an index, apart from constants. */
export function hasVariables({ top, bottom }: Expression): boolean {
  const names = [...top.values(), ...bottom.values()].flatMap(({ powers }) => [...powers.keys()]);
  return names.some(isVariableName);
}

/** A variable alone. */
export function isVariable(value: Expression): boolean {
  const [, name = ''] = /^1\*(.*)\^1$/.exec(canonical(value)) ?? [];
  return isVariableName(name);
}

function isVariableName(name: string): boolean {
  return /^[a-zA-Zα-ω]+(?:_[^^]*(?:\^1)?)?$/.test(name) && !constants.includes(name);
}

/** A text that is equal for equal sums. */
export function canonical({ top, bottom }: Expression): string {
  const text = (one: Sum) =>
    [...one]
      .map(([powers, { factor }]) => `${q.show(factor)}${powers}`)
      .sort()
      .join('+');
  return isOne(bottom) ? text(top) : `(${text(top)})/(${text(bottom)})`;
}

/** The value of a number with roots, π and e; undefined for other expressions. */
export function numeric({ top, bottom }: Expression): number | undefined {
  const [above, below] = [numericSum(top), numericSum(bottom)];
  return above === undefined || below === undefined ? undefined : above / below;
}

function numericSum(products: Sum): number | undefined {
  let total = 0;
  for (const { factor, powers } of products.values()) {
    let value = q.toNumber(factor);
    for (const [name, exponent] of powers) {
      const base = name === 'pi' ? Math.PI : name === 'e' ? Math.E : Number(name);
      if (Number.isNaN(base)) return undefined;
      value *= pow(base, q.toNumber(exponent));
    }
    total += value;
  }
  return total;
}

export function power(base: Expression, exponent: Expression): Expression {
  const by = rational(exponent);
  if (by === undefined) return atom(`power(${canonical(base)},${canonical(exponent)})`);
  if (by.d === 1n) return integerPower(base, by.n);
  const value = rational(base);
  if (value !== undefined) return rationalPower(value, by);
  const factored = positiveFactors(base);
  if (factored !== undefined) {
    const powers = new Map([...factored.powers].map(([name, one]) => [name, q.multiply(one, by)]));
    return multiply(rationalPower(factored.factor, by), expression([{ factor: q.ONE, powers }]));
  }
  return expression([{ factor: q.ONE, powers: new Map([[`(${canonical(base)})`, by]]) }]);
}

function integerPower(base: Expression, exponent: bigint): Expression {
  if (exponent < 0n) return integerPower(divide(number(q.ONE), base), -exponent);
  if (base.top.size === 0) return number(exponent === 0n ? q.ONE : q.ZERO);
  const value = rational(base);
  if (value !== undefined) return number(wholePower(value, exponent));
  if (base.top.size === 1 && isOne(base.bottom)) return productPower(base, exponent);
  if (exponent > 64n) throw new TooLarge();
  let result = number(q.ONE);
  for (let i = 0n; i < exponent; i++) result = multiply(result, base);
  return result;
}

function productPower(base: Expression, exponent: bigint): Expression {
  const products = [...base.top.values()].map(({ factor, powers }) => ({
    factor: wholePower(factor, exponent),
    powers: new Map([...powers].map(([name, one]) => [name, q.multiply(one, q.fraction(exponent))])),
  }));
  return expression(products);
}

function wholePower({ n, d }: Fraction, exponent: bigint): Fraction {
  const bits = BigInt(Math.max(bitsOf(n), bitsOf(d))) * exponent;
  if (bits > MOST_BITS) throw new TooLarge();
  // 1 and −1 have no bits here, so their exponent may be of any size.
  return q.fraction(bitsOf(n) === 0 ? (exponent % 2n === 0n ? n * n : n) : n ** exponent, d === 1n ? d : d ** exponent);
}

function bitsOf(value: bigint): number {
  return value === 1n || value === -1n ? 0 : value.toString(2).length;
}

/** A root of a rational number: of a negative one it is real for odd roots, and has the factor i for square roots. */
function rationalPower(value: Fraction, exponent: Fraction): Expression {
  if (value.n < 0n) {
    const positive = rationalPower(q.negate(value), exponent);
    if (exponent.d % 2n === 1n) return exponent.n % 2n === 0n ? positive : negate(positive);
    if (exponent.d === 2n) return multiply(integerPower(atom('i'), exponent.n), positive);
    return atom(`power(${q.show(value)},${q.show(exponent)})`);
  }
  if (value.n === 0n) {
    if (exponent.n < 0n) throw new RangeError('division by 0');
    return number(q.ZERO);
  }
  const powers = new Map<string, Fraction>();
  for (const [base, sign] of [
    [value.n, 1n],
    [value.d, -1n],
  ] as const) {
    for (const [prime, count] of primeFactors(base))
      powers.set(String(prime), q.multiply(q.fraction(sign * count), exponent));
  }
  return expression([{ factor: q.ONE, powers }]);
}

/** A product of a positive number and of atoms that are positive, or stand there once. */
function positiveFactors({ top, bottom }: Expression): Product | undefined {
  const [product] = top.values();
  if (!isOne(bottom) || top.size !== 1 || product === undefined || product.factor.n < 0n) return undefined;
  const isSafe = ([name, exponent]: [string, Fraction]) =>
    name === 'pi' || name === 'e' || /^\d+$/.test(name) || (name !== 'i' && q.isEqual(exponent, q.ONE));
  return [...product.powers].every(isSafe) ? product : undefined;
}

/**
 * What is left after the primes up to a limit counts as one prime: the square root of a large number is then an atom.
 */
function primeFactors(value: bigint): Map<bigint, bigint> {
  if (value.toString(2).length > 256) throw new TooLarge();
  const factors = new Map<bigint, bigint>();
  let rest = value;
  for (let prime = 2n; prime * prime <= rest && prime < LARGEST_PRIME; prime += prime === 2n ? 1n : 2n) {
    while (rest % prime === 0n) {
      factors.set(prime, (factors.get(prime) ?? 0n) + 1n);
      rest /= prime;
    }
  }
  const root = wholeRoot(rest);
  if (root !== undefined) factors.set(root, (factors.get(root) ?? 0n) + 2n);
  else if (rest > 1n) factors.set(rest, (factors.get(rest) ?? 0n) + 1n);
  return factors;
}

/** The square root of a square above 1. */
function wholeRoot(value: bigint): bigint | undefined {
  if (value < 4n) return undefined;
  let root = 1n << BigInt((value.toString(2).length + 1) >> 1);
  for (let next = (root + value / root) >> 1n; next < root; next = (root + value / root) >> 1n) root = next;
  return root * root === value ? root : undefined;
}

// Sums of products

function expression(products: readonly Product[]): Expression {
  return { top: sum(products), bottom: one };
}

/** A quotient by a single product is a sum. */
function simplified(top: Sum, bottom: Sum): Expression {
  const [product] = bottom.values();
  if (bottom.size !== 1 || product === undefined) return { top, bottom };
  const powers = new Map([...product.powers].map(([name, exponent]) => [name, q.negate(exponent)]));
  return { top: times(top, sum([{ factor: q.inverse(product.factor), powers }])), bottom: one };
}

function times(a: Sum, b: Sum): Sum {
  if (isOne(a)) return b;
  if (isOne(b)) return a;
  if (a.size * b.size > MOST_PRODUCTS) throw new TooLarge();
  const products: Product[] = [];
  for (const x of a.values()) {
    for (const y of b.values()) {
      const powers = new Map(x.powers);
      for (const [name, exponent] of y.powers) powers.set(name, q.add(powers.get(name) ?? q.ZERO, exponent));
      products.push({ factor: q.multiply(x.factor, y.factor), powers });
    }
  }
  return sum(products);
}

function sum(products: readonly Product[]): Sum {
  const result = new Map<string, Product>();
  for (const product of products) {
    const reduced = reduce(product);
    const key = keyOf(reduced.powers);
    const factor = q.add(result.get(key)?.factor ?? q.ZERO, reduced.factor);
    if (factor.n === 0n) result.delete(key);
    else result.set(key, { factor, powers: reduced.powers });
  }
  if (result.size > MOST_PRODUCTS) throw new TooLarge();
  return result;
}

/** Whole powers of primes and even powers of i belong to the factor. */
function reduce({ factor, powers }: Product): Product {
  let rest = factor;
  const kept = new Map<string, Fraction>();
  for (const [name, exponent] of powers) {
    if (/^\d+$/.test(name)) {
      const whole = q.floor(exponent);
      rest = q.multiply(rest, primePower(BigInt(name), whole));
      const part = q.add(exponent, q.fraction(-whole));
      if (part.n !== 0n) kept.set(name, part);
    } else if (name === 'i' && exponent.d === 1n) {
      const turns = ((exponent.n % 4n) + 4n) % 4n;
      if (turns >= 2n) rest = q.negate(rest);
      if (turns % 2n === 1n) kept.set(name, q.ONE);
    } else if (exponent.n !== 0n) kept.set(name, exponent);
  }
  return { factor: rest, powers: kept };
}

function primePower(prime: bigint, exponent: bigint): Fraction {
  const value = wholePower(q.fraction(prime), exponent < 0n ? -exponent : exponent);
  return exponent < 0n ? q.inverse(value) : value;
}

function keyOf(powers: Powers): string {
  return [...powers]
    .map(([name, exponent]) => `*${name}^${q.show(exponent)}`)
    .sort()
    .join('');
}

const one: Sum = new Map([['', { factor: q.ONE, powers: new Map() }]]);

function isOne(products: Sum): boolean {
  const [product] = products.values();
  return products === one || (products.size === 1 && product?.powers.size === 0 && q.isEqual(product.factor, q.ONE));
}

function areSameSums(a: Sum, b: Sum): boolean {
  if (a.size !== b.size) return false;
  for (const [key, { factor }] of a) {
    const other = b.get(key);
    if (other === undefined || !q.isEqual(factor, other.factor)) return false;
  }
  return true;
}
