/** Durations as users type them: `90s`, `10m`, `1h30m`, `2d`. */
import { InvalidInputError } from '../errors.ts';
import { showValue } from '../recipe/show-value.ts';

const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const;
type Unit = keyof typeof unitMs;

const units = Object.entries(unitMs) as readonly [Unit, number][];
/** Each unit at most once, from the largest to the smallest. */
const pattern = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;
/** A longer one is a typing error, and would exceed the range of dates. */
const longestMs = 3_660 * unitMs.d;

/** Milliseconds; undefined for text that is not a duration. */
export function durationMs(text: string): number | undefined {
  const match = pattern.exec(text);
  if (match === null || text === '') return undefined;
  return units.reduce((sum, [, ms], index) => sum + Number(match[index + 1] ?? 0) * ms, 0);
}

/** Does what durationMs does. Throws InvalidInputError that names the option; `least` in milliseconds. */
export function parseDuration(text: string, option: string, least: number = unitMs.s): number {
  const ms = durationMs(text);
  if (ms === undefined) {
    throw new InvalidInputError(`${option}: expected a duration, got ${showValue(text)}`, {
      hint: 'numbers with the units d, h, m, s: 90s, 10m, 1h30m, 2d',
    });
  }
  if (ms >= least && ms <= longestMs) return ms;
  const range = ms < least ? `at least ${showSpan(least)}` : `at most ${showSpan(longestMs)}`;
  throw new InvalidInputError(`${option}: expected ${range}, got ${text}`);
}

/** The shortest text that parses to the same duration: `10m`, `1h30m`; `0s`. */
export function showSpan(ms: number): string {
  let rest = Math.round(ms / unitMs.s) * unitMs.s;
  const parts = units.map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? '' : `${count}${unit}`;
  });
  return parts.join('') || '0s';
}
