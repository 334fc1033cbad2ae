/** Results of the functions of core/math over fixed arguments, as digests: equal on every Node and every processor. */
import { createHash } from 'node:crypto';
import { cos } from '../../core/math/cos.ts';
import { exp } from '../../core/math/exp.ts';
import { log, log1p } from '../../core/math/log.ts';
import { pow } from '../../core/math/pow.ts';

/** A function of one or two arguments, and where its arguments usually lie. */
interface Subject {
  readonly own: (x: number, y: number) => number;
  readonly engine: (x: number, y: number) => number;
  readonly usual: readonly (readonly [from: number, to: number])[];
  readonly usualSecond: readonly [from: number, to: number];
  /** Arguments of any size are allowed. */
  readonly takesAll: boolean;
}

const one = { usualSecond: [0, 1], takesAll: true } as const;
const near = [-1e-6, 1e-6] as const;

/** The functions by name; `engine` is what Node offers. */
export const subjects: Readonly<Record<string, Subject>> = {
  exp: { own: exp, engine: Math.exp, usual: [[-760, 720], [-2, 2], near], ...one },
  log: { own: log, engine: Math.log, usual: [[0, 10], [0.9, 1.1], near], ...one },
  log1p: { own: log1p, engine: Math.log1p, usual: [[-1.1, 10], [-1, 1], near], ...one },
  cos: {
    own: cos,
    engine: Math.cos,
    usual: [
      [0, 2 * Math.PI],
      [-1e3, 1e3],
      [-8e5, 8e5],
    ],
    ...one,
    takesAll: false,
  },
  pow: {
    own: pow,
    engine: (x, y) => x ** y,
    usual: [
      [0, 2],
      [0.99, 1.01],
      [-10, 10],
    ],
    usualSecond: [-100, 100],
    takesAll: true,
  },
};

/** Values at which a branch of one of the functions begins. */
const edges = [
  ...[0, 1, 2, 3, 0.5, 0.25, 5e-324, 2 ** -1022, Number.MAX_VALUE, Number.POSITIVE_INFINITY, Number.NaN, Math.LN2],
  ...[Math.LN2 / 2, 1.5 * Math.LN2, 709.782712893384, 709.7827128933841, 745.1332191019411, 745.1332191019412, 708.4],
  ...[1e-8, 1e-17, 1 + 2 ** -20, 1 - 2 ** -20, 1 - 2 ** -53, 0.41421356, 0.2928932, 2 ** 31, 2 ** 53, 2 ** 53 - 1, 64],
].flatMap((x) => [x, -x]);

/**
 * Calls `check` with the edges, with `count` usual arguments from each range, and with `count` arguments of any size.
 */
export function forArguments(subject: Subject, count: number, check: (x: number, y: number) => void): void {
  const random = new Words();
  const kept = edges.filter((x) => subject.takesAll || Math.abs(x) < 8e5);
  for (const x of kept) for (const y of subject.own.length === 1 ? [0] : edges) check(x, y);
  for (const [from, to] of subject.usual) {
    for (let i = 0; i < count; i++) {
      const y = random.between(...subject.usualSecond);
      check(random.between(from, to), i % 2 === 0 ? y : Math.trunc(y));
    }
  }
  for (let i = 0; i < count && subject.takesAll; i++) check(random.any(), random.any());
}

/** SHA-256 by function. NaN counts as one value, because its bits are the processor's. */
export function digests(count: number): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(subjects).map(([name, subject]) => {
      const results: number[] = [];
      forArguments(subject, count, (x, y) => results.push(subject.own(x, y)));
      const bits = new BigUint64Array(Float64Array.from(results).buffer);
      for (const [i, result] of results.entries()) if (Number.isNaN(result)) bits[i] = 0x7ff8000000000000n;
      return [name, createHash('sha256').update(bits).digest('hex').slice(0, 32)];
    }),
  );
}

/** Arguments from mulberry32, made of whole numbers only. */
class Words {
  #state = 12345;
  readonly #double = new Float64Array(1);
  readonly #words = new Uint32Array(this.#double.buffer);

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  }

  between(from: number, to: number): number {
    return from + ((to - from) * (this.next() * 2 ** 21 + (this.next() >>> 11))) / 2 ** 53;
  }

  /** Any double: infinite and subnormal ones too. */
  any(): number {
    this.#words[0] = this.next();
    this.#words[1] = this.next();
    return this.#double[0] as number;
  }
}
