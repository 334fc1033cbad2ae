/**
 * Cosines, by the method of fdlibm: the multiple of π/2 nearest to x is taken off in two or three parts, then a
 * polynomial gives the sine or the cosine of the rest, which is kept in two doubles. The constants are those of fdlibm
 * 5.3 (Sun Microsystems, 1993).
 */
import { highWord, withHighWord } from './double.ts';

/** The largest angle whose reduction in three parts is exact. Every argument of petrel is an angle of some turns. */
const largest = 2 ** 19 * (Math.PI / 2);

const halfPi = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21] as const;
const halfPiTails = [6.077100506506192e-11, 2.0222662487959506e-21, 8.4784276603689e-32] as const;

/** Returns cos x, the same bits on every processor and every Node. Throws RangeError for an |x| above 2^19·π/2. */
export function cos(x: number): number {
  const size = Math.abs(x);
  if (!Number.isFinite(x)) return Number.NaN;
  if (size > largest) throw new RangeError(`cos takes angles up to ${largest}, and got ${x}`);
  if (highWord(size) <= 0x3fe921fb) return cosineNearZero(size, 0);
  const { turns, rest, lost } = reduced(size);
  const value = turns % 2 === 0 ? cosineNearZero(rest, lost) : sineNearZero(rest, lost);
  return turns === 1 || turns === 2 ? -value : value;
}

/** x − n·π/2 as rest + lost, and n modulo 4, for a positive x. */
function reduced(x: number): { readonly turns: number; readonly rest: number; readonly lost: number } {
  const n = Math.trunc(x * 0.6366197723675814 + 0.5);
  let upper = x - n * halfPi[0];
  let lower = n * halfPiTails[0];
  let rest = upper - lower;
  // Where leading bits cancelled, the next part of π/2 is needed too.
  for (const [part, limit] of [
    [1, 16],
    [2, 49],
  ] as const) {
    if (exponentOf(x) - exponentOf(rest) <= limit) break;
    const before = upper;
    lower = n * halfPi[part];
    upper = before - lower;
    lower = n * halfPiTails[part] - (before - upper - lower);
    rest = upper - lower;
  }
  return { turns: n % 4, rest, lost: upper - rest - lower };
}

const exponentOf = (x: number): number => (highWord(x) >> 20) & 0x7ff;

/** cos(x + lost) for |x| ≤ π/4. */
function cosineNearZero(x: number, lost: number): number {
  const size = highWord(x) & 0x7fffffff;
  if (size < 0x3e400000) return 1;
  const z = x * x;
  const inner = 2.480158728947673e-5 + z * (-2.7557314351390663e-7 + z * innermost(z));
  const r = z * (0.0416666666666666 + z * (-0.001388888888887411 + z * inner));
  if (size < 0x3fd33333) return 1 - (0.5 * z - (z * r - x * lost));
  const quarter = size > 0x3fe90000 ? 0.28125 : withHighWord(0, size - 0x200000);
  return 1 - quarter - (0.5 * z - quarter - (z * r - x * lost));
}

const innermost = (z: number): number => 2.087572321298175e-9 + z * -1.1359647557788195e-11;

/** sin(x + lost) for |x| ≤ π/4. */
function sineNearZero(x: number, lost: number): number {
  if ((highWord(x) & 0x7fffffff) < 0x3e400000) return x;
  const z = x * x;
  const cube = z * x;
  const inner = 2.7557313707070068e-6 + z * (-2.5050760253406863e-8 + z * 1.58969099521155e-10);
  const r = 0.00833333333332249 + z * (-0.0001984126982985795 + z * inner);
  return x - (z * (0.5 * lost - cube * r) - lost - cube * -0.16666666666666632);
}
