/**
 * Powers, by the method of fdlibm: log2 x in two doubles (n + log2 of a fraction near 1 or 1.5), times y, then 2 to
 * that. The constants are those of fdlibm 5.3 (Sun Microsystems, 1993). Node 20 and 22 have these bits, later versions
 * ask the C library.
 */
import { highWord, powerOfTwo, withHighWord, withoutLowWord } from './double.ts';
import { expSeries } from './exp.ts';

/** A number as the sum of two, the first with a short fraction. */
interface Pair {
  high: number;
  low: number;
}

/** Returns x^y with the rules of JavaScript's `**`, the same bits on every processor and every Node. */
export function pow(x: number, y: number): number {
  if (y === 0) return 1;
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.NaN;
  const size = Math.abs(x);
  if (y === Number.POSITIVE_INFINITY || y === Number.NEGATIVE_INFINITY) return toInfinity(size, y);
  if (y === 1) return x;
  if (y === 2) return x * x;
  if (y === -1) return 1 / x;
  if (y === 0.5 && highWord(x) >= 0) return Math.sqrt(x);
  const parity = parityOf(y);
  if (size === 0 || size === 1 || size === Number.POSITIVE_INFINITY) return ofSpecial(x, size, y, parity);
  if (x < 0 && parity === undefined) return Number.NaN;
  const sign = x < 0 && parity === 'odd' ? -1 : 1;
  return ofPositive(size, y, sign);
}

/** What kind of whole number y is; undefined for another number. */
function parityOf(y: number): 'even' | 'odd' | undefined {
  if (!Number.isInteger(y)) return undefined;
  return Math.abs(y) < 2 ** 53 && y % 2 !== 0 ? 'odd' : 'even';
}

function toInfinity(size: number, y: number): number {
  if (size === 1) return Number.NaN;
  return size > 1 === y > 0 ? Number.POSITIVE_INFINITY : 0;
}

/** Powers of 0, ±1 and ±∞. */
function ofSpecial(x: number, size: number, y: number, parity: 'even' | 'odd' | undefined): number {
  const result = y < 0 ? 1 / size : size;
  if (highWord(x) >= 0) return result;
  if (size === 1 && parity === undefined) return Number.NaN;
  return parity === 'odd' ? -result : result;
}

function ofPositive(size: number, y: number, sign: number): number {
  const sizeOfY = highWord(y) & 0x7fffffff;
  if (sizeOfY > 0x41e00000) {
    const high = highWord(size);
    const isFar =
      sizeOfY > 0x43f00000 ? high <= 0x3fefffff || high >= 0x3ff00000 : high < 0x3fefffff || high > 0x3ff00000;
    if (isFar) return sign * (high < 0x3ff00000 === y < 0 ? Number.POSITIVE_INFINITY : 0);
    return timesAndRaised(log2NearOne(size - 1), y, sign);
  }
  return timesAndRaised(log2Of(size), y, sign);
}

/** log2(1 + t) for |t| below 2^-20. */
function log2NearOne(t: number): Pair {
  const w = t * t * (0.5 - t * (0.3333333333333333 - t * 0.25));
  const u = 1.4426950216293335 * t;
  const v = t * 1.9259629911266175e-8 - w * Math.LOG2E;
  const high = withoutLowWord(u + v);
  return { high, low: v - (high - u) };
}

/** log2 of a positive number: s = (f − b) / (f + b) for the nearer b of 1 and 1.5, then a series in s. */
function log2Of(size: number): Pair {
  const scale = size < 2 ** -1022 ? 53 : 0;
  const normal = scale === 0 ? size : size * 2 ** 53;
  let n = (highWord(normal) >> 20) - 1023 - scale;
  const fraction = highWord(normal) & 0xfffff;
  let high = fraction | 0x3ff00000;
  let near = 0;
  if (fraction > 0x3988e && fraction < 0xbb67a) near = 1;
  else if (fraction >= 0xbb67a) {
    n += 1;
    high -= 0x100000;
  }
  return log2OfFraction(withHighWord(normal, high), high, near, n);
}

function log2OfFraction(f: number, highOfF: number, near: number, n: number): Pair {
  const b = near === 0 ? 1 : 1.5;
  const u = f - b;
  const v = 1 / (f + b);
  const s = u * v;
  const sHigh = withoutLowWord(s);
  const sumHigh = withHighWord(0, ((highOfF >> 1) | 0x20000000) + 0x80000 + (near << 18));
  const sumLow = f - (sumHigh - b);
  const sLow = v * (u - sHigh * sumHigh - sHigh * sumLow);
  const s2 = s * s;
  const r = s2 * s2 * log2Series(s2) + sLow * (sHigh + s);
  const square = sHigh * sHigh;
  const tHigh = withoutLowWord(3 + square + r);
  const tLow = r - (tHigh - 3 - square);
  const product = sHigh * tHigh;
  const rest = sLow * tHigh + tLow * s;
  const pHigh = withoutLowWord(product + rest);
  const pLow = rest - (pHigh - product);
  const zHigh = 0.9617967009544373 * pHigh;
  const zLow = -7.028461650952758e-9 * pHigh + pLow * 0.9617966939259756 + (near === 0 ? 0 : 1.350039202129749e-8);
  const ofB = near === 0 ? 0 : 0.5849624872207642;
  const high = withoutLowWord(zHigh + zLow + ofB + n);
  return { high, low: zLow - (high - n - ofB - zHigh) };
}

function log2Series(s2: number): number {
  const inner = 0.272728123808534 + s2 * (0.23066074577556175 + s2 * 0.20697501780033842);
  return 0.5999999999999946 + s2 * (0.4285714285785502 + s2 * (0.33333332981837743 + s2 * inner));
}

/** sign·2^(y·log). */
function timesAndRaised(log: Pair, y: number, sign: number): number {
  const yHigh = withoutLowWord(y);
  const low = (y - yHigh) * log.high + y * log.low;
  const high = yHigh * log.high;
  const z = low + high;
  if (z >= 1024 && (z > 1024 || low + 8.008566259537294e-17 > z - high)) return sign * Number.POSITIVE_INFINITY;
  if (z <= -1075 && (z < -1075 || low <= z - high)) return sign * 0;
  return sign * raised(high, low, z);
}

/**
 * 2^(high + low). The correction stands inside the divisor, as in V8, and not after the division as in fdlibm: a
 * difference in the last bit, which results of earlier builds have.
 */
function raised(high: number, low: number, z: number): number {
  const n = Math.abs(z) > 0.5 ? roundedAway(z) : 0;
  const whole = high - n;
  const t = withoutLowWord(low + whole);
  const u = t * 0.6931471824645996;
  const v = (low - (t - whole)) * Math.LN2 + t * -1.904654299957768e-9;
  const sum = u + v;
  const rest = v - (sum - u);
  const c = sum - expSeries(sum * sum);
  const quotient = (sum * c) / (c - 2 - (rest + sum * rest));
  return scaled(1 - (quotient - sum), n);
}

/** z + ½ of its size, cut to a whole number. */
const roundedAway = (z: number): number => Math.trunc(z + (z < 0 ? -0.5 : 0.5));

/** y·2^n, rounded once where the result is subnormal. */
function scaled(y: number, n: number): number {
  const high = highWord(y) + (n << 20);
  if (high >> 20 > 0) return withHighWord(y, high);
  return y * powerOfTwo(n + 1000) * 2 ** -1000;
}
