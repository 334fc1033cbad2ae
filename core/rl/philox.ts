/**
 * Random numbers without state: Philox4x32-10, a bijection of 128-bit counters under a 64-bit key (Salmon et al. 2011,
 * "Parallel random numbers: as easy as 1, 2, 3"). The engine samples with the same generator (native/src/philox.h). The
 * same key and counter give the same bits on every machine. Words are unsigned 32-bit integers.
 */

export type PhiloxCounter = readonly [number, number, number, number];
export type PhiloxKey = readonly [number, number];

const ROUNDS = 10;

export function philox4x32(counter: PhiloxCounter, key: PhiloxKey): PhiloxCounter {
  let [c0, c1, c2, c3] = counter;
  let [k0, k1] = key;
  for (let round = 0; round < ROUNDS; round++) {
    const [highA, lowA] = product(0xd2511f53, c0);
    const [highB, lowB] = product(0xcd9e8d57, c2);
    [c0, c1, c2, c3] = [(highB ^ c1 ^ k0) >>> 0, lowB, (highA ^ c3 ^ k1) >>> 0, lowA];
    [k0, k1] = [(k0 + 0x9e3779b9) >>> 0, (k1 + 0xbb67ae85) >>> 0];
  }
  return [c0, c1, c2, c3];
}

/** A double in [0, 1) with 53 random bits: the first word gives the high 27, the second the low 26. */
export function philoxUniform(counter: PhiloxCounter, key: PhiloxKey): number {
  const [first, second] = philox4x32(counter, key);
  return ((first >>> 5) * 2 ** 26 + (second >>> 6)) / 2 ** 53;
}

/** The high and the low word of a 64-bit product, from products that a double holds exactly. */
function product(a: number, b: number): [high: number, low: number] {
  const low = Math.imul(a, b) >>> 0;
  const upper = (a >>> 16) * b + Math.floor(((a & 0xffff) * b) / 2 ** 16);
  return [Math.floor(upper / 2 ** 16), low];
}
