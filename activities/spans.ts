/**
 * Reads from results when jobs ran. This gives the wall time of a stage, independent of which process asked for its
 * jobs.
 */
import type { Stage } from '../core/wire/jobs/index.ts';
import type { JobResult } from '../core/ports/jobs.ts';

/** Milliseconds since the epoch. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

/** undefined when the result does not say it. */
export function spanOf<S extends Stage>(
  stage: S,
  { timings, endedAt }: Pick<JobResult<S>, 'timings' | 'endedAt'>,
): Span | undefined {
  const until = endedAt === undefined ? Number.NaN : Date.parse(endedAt);
  const from = until - 1000 * Number(timings[`timing_s/${stage}`] ?? Number.NaN);
  return Number.isFinite(from) ? { from, until } : undefined;
}

/**
 * The span from the first start to the last end. undefined when a span is missing, because a part of the stage gives no
 * wall time.
 */
export function joinSpans(spans: readonly (Span | undefined)[]): Span | undefined {
  const known = spans.filter((span) => span !== undefined);
  if (known.length === 0 || known.length < spans.length) return undefined;
  return known.reduce((a, b) => ({ from: Math.min(a.from, b.from), until: Math.max(a.until, b.until) }));
}

/** The seconds of a span under a name; empty without a span. */
export function seconds(name: string, span: Span | undefined): Record<string, number> {
  return span === undefined ? {} : { [name]: Math.max(0, span.until - span.from) / 1000 };
}
