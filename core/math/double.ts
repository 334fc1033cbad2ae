/** The two words of a double. Both processors on which petrel could run, x86-64 and arm64, store the low one first. */

const value = new Float64Array(1);
const words = new Uint32Array(value.buffer);

/** Returns sign, exponent and the upper 20 bits of the fraction, as a signed integer. */
export function highWord(x: number): number {
  value[0] = x;
  return (words[1] as number) | 0;
}

/** Returns x with another high word. */
export function withHighWord(x: number, high: number): number {
  value[0] = x;
  words[1] = high;
  return value[0] as number;
}

/**
 * Returns x with the lower half of its fraction cleared: products of two such numbers of 26 bits or fewer are exact.
 */
export function withoutLowWord(x: number): number {
  value[0] = x;
  words[0] = 0;
  return value[0] as number;
}

/** 2^n from n = -1074 on: to read one is faster than to make it out of words. */
const powers = powersOfTwo();

/** Returns 2^n for an n from -1074 to 1023. */
export const powerOfTwo = (n: number): number => powers[n + 1074] as number;

function powersOfTwo(): Float64Array {
  const all = new Float64Array(1074 + 1024);
  let power = 5e-324;
  for (let i = 0; i < all.length; i++, power *= 2) all[i] = power;
  return all;
}
