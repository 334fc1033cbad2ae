/**
 * The syntax of thresholds in `algorithm.rollout_correction`:
 *
 *   2, "2"        one bound
 *   "0.5_5"       a lower and an upper bound
 *   "0.1, 0.5_2"  one per statistic (only rollout_rs_threshold), in the order of rollout_rs; a single one serves all
 *
 * Numbers are written as in a recipe: 0.5, .5, 1e-3, inf. Python's own digit separator is refused: verl reads "0.5_1_2"
 * as 0.5 and 12, which nobody means.
 */
import { InvalidInputError } from '../../errors.ts';

export interface Bounds {
  readonly lower?: number;
  readonly upper: number;
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const THRESHOLD_EXAMPLE = 'for example 2 or "0.5_5"';
const INFINITE = /^\+?inf(?:inity)?$/i;

/** @throws InvalidInputError that names the key and shows both forms */
export function parseBounds(key: string, spec: unknown): Bounds {
  const text = typeof spec === 'number' ? String(spec) : typeof spec === 'string' ? spec.trim() : undefined;
  if (text === undefined || text === '') throw notAThreshold(key, spec);
  const parts = text.split('_').map((part) => positive(part, key, spec));
  const [first, second] = parts;
  if (first === undefined || parts.length > 2) throw notAThreshold(key, spec);
  if (second === undefined) return { upper: first };
  if (first > second) {
    throw new InvalidInputError(`${key}: the lower bound ${first} is above the upper bound ${second}`, {
      hint: `write the smaller number first: "${second}_${first}"`,
    });
  }
  return { lower: first, upper: second };
}

/** The thresholds of a comma-separated list, or the same one `count` times. */
export function thresholdList(key: string, spec: unknown, count: number): readonly unknown[] {
  const parts = typeof spec === 'string' ? spec.split(',').filter((part) => part.trim() !== '') : [spec];
  if (parts.length === 1) return Array.from({ length: count }, () => parts[0]);
  if (parts.length === count) return parts;
  throw new InvalidInputError(`${key} has ${parts.length} thresholds for ${count} statistics`, {
    hint: `give one for all, or one for each, separated by commas: "${Array.from({ length: count }, (_, i) => parts[i % parts.length] ?? 2).join(',')}"`,
  });
}

function positive(text: string, key: string, spec: unknown): number {
  const trimmed = text.trim();
  if (INFINITE.test(trimmed)) return Infinity;
  if (!NUMBER.test(trimmed)) throw notAThreshold(key, spec);
  const value = Number(trimmed);
  if (value > 0) return value;
  throw new InvalidInputError(`${key}: a bound must be greater than 0, got ${trimmed}`, { hint: THRESHOLD_EXAMPLE });
}

function notAThreshold(key: string, spec: unknown): InvalidInputError {
  return new InvalidInputError(
    `${key}: expected a positive number or "low_high", got ${JSON.stringify(spec) ?? 'nothing'}`,
    {
      hint: THRESHOLD_EXAMPLE,
    },
  );
}
