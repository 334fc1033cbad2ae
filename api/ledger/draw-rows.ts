/**
 * Which row a draw reads: a second implementation of the permutation, written from its description. It is a balanced
 * Feistel network of 8 rounds, keyed by (seed, pass), over the least even number of bits that can number all rows. It
 * is applied again until the result is a row number. It uses BigInt; the code that writes the records uses 32-bit
 * numbers.
 */
const bits32 = 0xffff_ffffn;
const golden = 0x9e37_79b9n;
const rounds = 8n;

/** "lowbias32" of Ettinger. */
function mix(value: bigint): bigint {
  let x = value & bits32;
  x = ((x ^ (x >> 16n)) * 0x7feb_352dn) & bits32;
  x = ((x ^ (x >> 15n)) * 0x846c_a68bn) & bits32;
  return x ^ (x >> 16n);
}

function roundKeys(words: readonly bigint[]): bigint[] {
  let state = golden;
  for (const word of words) {
    state = mix(state ^ BigInt.asUintN(32, word));
    state = mix(((state + 0x85eb_ca6bn) & bits32) ^ BigInt.asUintN(32, word >> 32n));
  }
  return Array.from({ length: Number(rounds) }, (_, round) => mix(state + (BigInt(round) + 1n) * golden));
}

/** Least h ≥ 1 with 4^h ≥ size. */
function halfWidth(size: bigint): bigint {
  let half = 1n;
  while (1n << (2n * half) < size) half++;
  return half;
}

export interface RowStream {
  readonly rows: number;
  readonly seed: number;
  readonly shuffle: boolean;
}

/** Remembers the keys of the pass it was asked for last. */
export class DrawRows {
  readonly #stream: RowStream;
  #pass = -1n;
  #keys: readonly bigint[] = [];

  constructor(stream: RowStream) {
    this.#stream = stream;
  }

  rowOf(draw: number): number {
    const { rows, seed, shuffle } = this.#stream;
    if (!shuffle) return draw % rows;
    const size = BigInt(rows);
    const pass = BigInt(draw) / size;
    if (pass !== this.#pass) [this.#pass, this.#keys] = [pass, roundKeys([BigInt(seed), pass])];
    const half = halfWidth(size);
    const mask = (1n << half) - 1n;
    let at = BigInt(draw) % size;
    do {
      let [left, right] = [at >> half, at & mask];
      for (const key of this.#keys) [left, right] = [right, left ^ (mix(right ^ key) & mask)];
      at = (left << half) | right;
    } while (at >= size);
    return Number(at);
  }
}
