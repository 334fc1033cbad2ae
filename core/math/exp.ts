/**
 * e to a power, by the method of fdlibm: x = k·ln 2 + r with |r| ≤ ln 2 / 2, then a rational approximation of e^r with
 * an error below 2^-59, then 2^k. The constants are those of fdlibm 5.3 (Sun Microsystems, 1993).
 */
import { highWord, powerOfTwo } from './double.ts';

const largest = 709.782712893384;
const smallest = -745.1332191019411;
/** ln 2 in two parts: whole multiples of the first are exact. */
const ln2High = 0.6931471803691238;
const ln2Low = 1.9082149292705877e-10;

/** Returns e^x, the same bits on every processor and every Node. */
export function exp(x: number): number {
  const high = highWord(x);
  const size = high & 0x7fffffff;
  if (size >= 0x40862e42) {
    if (Number.isNaN(x) || x > largest) return x + Number.POSITIVE_INFINITY;
    if (x < smallest) return 0;
  }
  if (size <= 0x3fd62e42) return size < 0x3e300000 ? 1 + x : ofReduced(x, 0, x);
  if (x === 1) return Math.E;
  const k = size < 0x3ff0a2b2 ? (high < 0 ? -1 : 1) : Math.trunc(Math.LOG2E * x + (high < 0 ? -0.5 : 0.5));
  const upper = x - k * ln2High;
  const lower = k * ln2Low;
  return scaled(1 - (lower - quotient(upper - lower) - upper), k);
}

/** e^r for the r that needed no reduction. */
function ofReduced(r: number, lower: number, upper: number): number {
  return 1 - (lower - quotient(r) - upper);
}

/** r·c / (2 − c), where c approximates r − r·(e^r + 1)/(e^r − 1) + 2. */
function quotient(r: number): number {
  const c = r - expSeries(r * r);
  return (r * c) / (2 - c);
}

/** The polynomial in t = r² that exp and pow share. */
export function expSeries(t: number): number {
  const inner = 6.613756321437934e-5 + t * (-1.6533902205465252e-6 + t * 4.1381367970572385e-8);
  return t * (0.16666666666666602 + t * (-0.0027777777777015593 + t * inner));
}

/** y·2^k, rounded once where the result is subnormal. */
function scaled(y: number, k: number): number {
  if (k === 1024) return y * 2 * 2 ** 1023;
  if (k >= -1021) return y * powerOfTwo(k);
  return y * powerOfTwo(k + 1000) * 2 ** -1000;
}
