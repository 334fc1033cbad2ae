/**
 * A keyed permutation of 0 … size − 1, O(1) per index and without a table: a balanced Feistel network over the next
 * even number of bits, repeated until the result is in range (cycle walking: Black & Rogaway 2002, "Ciphers with
 * arbitrary finite domains"). At most 4 steps on average, because the domain is less than 4 times the size.
 *
 * It is for shuffling, not for secrecy. Which rows a run draws depends on its numbers, so they must never change; the
 * verifier has an implementation of its own (api/ledger/draw-rows.ts).
 */
import { InvalidInputError } from '../errors.ts';

const ROUNDS = 8;
const LARGEST = 2 ** 30;

/** Image of `index` under the permutation that `key` (any list of safe integers) selects. */
export function permute(index: number, size: number, key: readonly number[]): number {
  if (!(Number.isInteger(size) && size >= 1 && size <= LARGEST)) {
    throw new InvalidInputError(`a permutation needs a size between 1 and 2^30, got ${size}`);
  }
  if (!(Number.isInteger(index) && index >= 0 && index < size)) {
    throw new InvalidInputError(`index ${index} is outside 0 … ${size - 1}`);
  }
  const halfBits = Math.max(1, Math.ceil((32 - Math.clz32(size - 1)) / 2));
  const roundKeys = roundKeysOf(key);
  let image = index;
  do image = feistel(image, halfBits, roundKeys);
  while (image >= size);
  return image;
}

/** All of 0 … size − 1 in permuted order. */
export function permutedRange(size: number, key: readonly number[]): number[] {
  return Array.from({ length: size }, (_, index) => permute(index, size, key));
}

function feistel(value: number, halfBits: number, roundKeys: readonly number[]): number {
  const mask = (1 << halfBits) - 1;
  let [left, right] = [value >>> halfBits, value & mask];
  for (const roundKey of roundKeys) [left, right] = [right, (left ^ mix(right ^ roundKey)) & mask];
  return left * (1 << halfBits) + right;
}

/** One 32-bit key per round from all words of the key, low and high halves. */
function roundKeysOf(key: readonly number[]): number[] {
  let state = 0x9e3779b9;
  for (const word of key) {
    state = mix(state ^ (word >>> 0));
    state = mix((state + 0x85ebca6b) ^ (Math.floor(word / 2 ** 32) >>> 0));
  }
  return Array.from({ length: ROUNDS }, (_, round) => mix(state + Math.imul(round + 1, 0x9e3779b9)));
}

/**
 * Finaliser of MurmurHash3 with better constants (Ettinger's "lowbias32"): every input bit reaches every output bit.
 */
function mix(value: number): number {
  let x = value >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}
