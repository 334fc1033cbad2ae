/**
 * Natural logarithms, by the method of fdlibm: x = 2^k·(1 + f) with √½ < 1 + f < √2, then log(1 + f) by a series in
 * s = f / (2 + f). The constants are those of fdlibm 5.3 (Sun Microsystems, 1993).
 */
import { highWord, powerOfTwo, withHighWord } from './double.ts';

/** ln 2 in two parts: whole multiples of the first are exact. */
const ln2High = 0.6931471803691238;
const ln2Low = 1.9082149292705877e-10;
const [g1, g2, g3, g4, g5, g6, g7] = [
  0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784, 0.1818357216161805,
  0.15313837699209373, 0.14798198605116586,
] as const;

/** Returns ln x, the same bits on every processor and every Node. */
export function log(x: number): number {
  if (!(x > 0) || x === Number.POSITIVE_INFINITY) return outside(x);
  let k = 0;
  let normal = x;
  if (x < 2 ** -1022) {
    k = -54;
    normal = x * 2 ** 54;
  }
  const high = highWord(normal);
  const fraction = high & 0xfffff;
  const carry = (fraction + 0x95f64) & 0x100000;
  const exponent = (high >> 20) - 1023 + (carry >> 20);
  return ofFraction(normal * powerOfTwo(-exponent) - 1, fraction, k + exponent);
}

/** log(1 + f) + k·ln 2; `fraction`: the upper bits of the argument's fraction. */
function ofFraction(f: number, fraction: number, k: number): number {
  if ((0xfffff & (2 + fraction)) < 3) return nearOne(f, k);
  const s = f / (2 + f);
  const z = s * s;
  const w = z * z;
  const odd = w * (g2 + w * (g4 + w * g6));
  const even = z * (g1 + w * (g3 + w * (g5 + w * g7)));
  const rest = even + odd;
  if (((fraction - 0x6147a) | (0x6b851 - fraction)) <= 0) {
    if (k === 0) return f - s * (f - rest);
    return k * ln2High - (s * (f - rest) - k * ln2Low - f);
  }
  const half = 0.5 * f * f;
  if (k === 0) return f - (half - s * (half + rest));
  return k * ln2High - (half - (s * (half + rest) + k * ln2Low) - f);
}

/** The first terms of the series, for |f| < 2^-20. */
function nearOne(f: number, k: number): number {
  if (f === 0) return k === 0 ? 0 : k * ln2High + k * ln2Low;
  const rest = f * f * (0.5 - 0.3333333333333333 * f);
  if (k === 0) return f - rest;
  return k * ln2High - (rest - k * ln2Low - f);
}

/** ln of 0, of negative numbers, of ∞ and of NaN. */
function outside(x: number): number {
  if (x === 0) return Number.NEGATIVE_INFINITY;
  return x > 0 ? x : Number.NaN;
}

/** Returns ln(1 + x), exact to the last bit or so near 0 too. */
export function log1p(x: number): number {
  const high = highWord(x);
  const size = high & 0x7fffffff;
  if (Number.isNaN(x) || x <= -1 || x === Number.POSITIVE_INFINITY) return outside(1 + x);
  if (size < 0x3e200000) return size < 0x3c900000 ? x : x - x * x * 0.5;
  // Between √½ − 1 and √2 − 1 nothing is split off.
  if (high < 0x3fda827a && (high > 0 || high <= (0xbfd2bec4 | 0))) return ofSum(x, 1, 0, 0);
  const sum = high < 0x43400000 ? 1 + x : x;
  const exponent = (highWord(sum) >> 20) - 1023;
  const lost = high < 0x43400000 ? (exponent > 0 ? 1 - (sum - x) : x - (sum - 1)) / sum : 0;
  const upper = highWord(sum) & 0xfffff;
  if (upper < 0x6a09e) return ofSum(withHighWord(sum, upper | 0x3ff00000) - 1, upper, exponent, lost);
  const halved = withHighWord(sum, upper | 0x3fe00000) - 1;
  return ofSum(halved, (0x100000 - upper) >> 2, exponent + 1, lost);
}

/** log(1 + f) + k·ln 2 + lost; `fraction` is 0 where f is tiny. */
function ofSum(f: number, fraction: number, k: number, lost: number): number {
  const half = 0.5 * f * f;
  if (fraction === 0) {
    if (f === 0) return k === 0 ? 0 : k * ln2High + (lost + k * ln2Low);
    const rest = half * (1 - 0.6666666666666666 * f);
    return k === 0 ? f - rest : k * ln2High - (rest - (k * ln2Low + lost) - f);
  }
  const s = f / (2 + f);
  const z = s * s;
  const rest = z * (g1 + z * (g2 + z * (g3 + z * (g4 + z * (g5 + z * (g6 + z * g7))))));
  if (k === 0) return f - (half - s * (half + rest));
  return k * ln2High - (half - (s * (half + rest) + (k * ln2Low + lost)) - f);
}
