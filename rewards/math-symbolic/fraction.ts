/** Exact rational numbers. */
export interface Fraction {
  readonly n: bigint;
  /** Greater than 0, without a common factor with n. */
  readonly d: bigint;
}

export const ZERO: Fraction = { n: 0n, d: 1n };
export const ONE: Fraction = { n: 1n, d: 1n };

/** @throws RangeError for a denominator of 0. */
export function fraction(n: bigint, d = 1n): Fraction {
  if (d === 0n) throw new RangeError('division by 0');
  const divisor = greatestCommonDivisor(n, d) * (d < 0n ? -1n : 1n);
  return { n: n / divisor, d: d / divisor };
}

/** The fraction of a decimal number such as 1.50: 3/2. */
export function fromDecimal(text: string): Fraction {
  const [whole = '', part = ''] = text.split('.');
  return fraction(BigInt(whole + part), 10n ** BigInt(part.length));
}

export function add(a: Fraction, b: Fraction): Fraction {
  return fraction(a.n * b.d + b.n * a.d, a.d * b.d);
}

export function multiply(a: Fraction, b: Fraction): Fraction {
  return fraction(a.n * b.n, a.d * b.d);
}

/** @throws RangeError for 0. */
export function inverse(a: Fraction): Fraction {
  return fraction(a.d, a.n);
}

export function negate(a: Fraction): Fraction {
  return { n: -a.n, d: a.d };
}

export function isEqual(a: Fraction, b: Fraction): boolean {
  return a.n === b.n && a.d === b.d;
}

/** The largest integer that is not greater. */
export function floor({ n, d }: Fraction): bigint {
  return n >= 0n ? n / d : -((-n + d - 1n) / d);
}

export function show({ n, d }: Fraction): string {
  return d === 1n ? String(n) : `${n}/${d}`;
}

export function toNumber({ n, d }: Fraction): number {
  const direct = Number(n) / Number(d);
  if (Number.isFinite(direct) && (direct !== 0 || n === 0n)) return direct;
  const shift = BigInt(Math.max(0, Math.max(String(n).length, String(d).length) - 300));
  return Number(n / 10n ** shift) / Number(d / 10n ** shift);
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}
