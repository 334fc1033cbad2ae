/** Checks as data: one number of a metric's values over a run, and a bound for it. */
import type { Series } from './observed.ts';

const numbers = {
  first: (values: readonly number[]) => values.at(0),
  last: (values: readonly number[]) => values.at(-1),
  lowest: (values: readonly number[]) => Math.min(...values),
  highest: (values: readonly number[]) => Math.max(...values),
  /** The one farthest from 0, without its sign. */
  'largest size of': (values: readonly number[]) => Math.max(...values.map(Math.abs)),
  'mean of': (values: readonly number[]) => total(values) / values.length,
  'sum of': (values: readonly number[]) => total(values),
  /** Last value divided by the first: 0.5 means halved. */
  'last / first of': (values: readonly number[]) => Number(values.at(-1)) / Number(values.at(0)),
} as const;

const bounds = {
  '>': (value: number, limit: number) => value > limit,
  '>=': (value: number, limit: number) => value >= limit,
  '<': (value: number, limit: number) => value < limit,
  '<=': (value: number, limit: number) => value <= limit,
} as const;

export type NumberOf = keyof typeof numbers;
export type Bound = keyof typeof bounds;

export type Check =
  | {
      readonly type: 'bound';
      readonly of: NumberOf;
      readonly metric: string;
      readonly bound: Bound;
      readonly limit: number;
    }
  /** The run does not report the metric, because the algorithm has no such quantity. */
  | { readonly type: 'absent'; readonly metric: string };

/**
 * `expect('sum of', 'actor/pg_clipfrac', '>', 0)`. Metrics are those of `petrel metrics`, and `record/…` of
 * observed.ts.
 */
export const expect = (of: NumberOf, metric: string, bound: Bound, limit: number): Check => ({
  type: 'bound',
  of,
  metric,
  bound,
  limit,
});
export const absent = (metric: string): Check => ({ type: 'absent', metric });

export interface Checked {
  /** `sum of actor/pg_clipfrac > 0`. */
  readonly text: string;
  /** null: the run has no values, as a check for absence wants it. */
  readonly value: number | null;
  readonly ok: boolean;
}

/** A metric without values passes no bound, and neither does a value that is not finite. */
export function checked(check: Check, series: Series): Checked {
  const values = series.get(check.metric) ?? [];
  const text = textOf(check);
  if (check.type === 'absent') return { text, value: values.at(0) ?? null, ok: values.length === 0 };
  if (values.length === 0) return { text, value: null, ok: false };
  const value = numbers[check.of](values) ?? Number.NaN;
  return { text, value, ok: values.every(Number.isFinite) && bounds[check.bound](value, check.limit) };
}

export const textOf = (check: Check): string =>
  check.type === 'absent' ? `no ${check.metric}` : `${check.of} ${check.metric} ${check.bound} ${String(check.limit)}`;

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
