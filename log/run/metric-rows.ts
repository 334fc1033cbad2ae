/** Metrics of a run by iteration, from its batch, update and validation records or from chunks of them. */
import type { Measured, MeasuredIteration, MetricValues } from '../../core/records/metric-columns.ts';
import type { LogEnd } from './lineage.ts';
import { measuredLog, newestInChunks } from './metric-chunks.ts';
import type { RunLog } from './run-log.ts';

export interface MetricRow {
  /** Policy version; version 0 has only a validation. */
  readonly iteration: number;
  readonly term: number;
  readonly metrics: MetricValues;
  /** Seconds, speed and memory. Those of a validation's jobs start with `val_timing_s/`. */
  readonly timings: MetricValues;
}

/** Ascending. `last`: only the newest iterations. */
export async function metricRows(log: RunLog, last = Number.POSITIVE_INFINITY): Promise<MetricRow[]> {
  const end = await log.end((term) => newestInChunks(log, term));
  return end === undefined ? [] : metricRowsFrom(end.position - last + 1, end, log);
}

/** Ascending: from this iteration to the end, also when the log has grown since the end was read. */
export async function metricRowsFrom(iteration: number, end: LogEnd, log: RunLog): Promise<MetricRow[]> {
  const { iterations, validations } = await measuredLog(log, iteration, end);
  const rows = new Map<number, MetricRow>();
  for (const one of iterations) rows.set(one.iteration, rowOf(one));
  for (const one of validations) {
    const row = rows.get(one.iteration) ?? { iteration: one.iteration, term: one.term, metrics: {}, timings: {} };
    rows.set(one.iteration, withValidation(row, one));
  }
  return [...rows.values()].sort((a, b) => a.iteration - b.iteration);
}

/** The row of an iteration, as its records have it. */
export const rowOf = ({
  iteration,
  term,
  batch,
  update,
}: MeasuredIteration & { readonly term: number }): MetricRow => ({
  iteration,
  term,
  metrics: { ...batch.metrics, ...update.metrics },
  timings: withPresentNames({ ...batch.timings, ...update.timings }),
});

/** The row with the validation of its policy. */
export const withValidation = (row: MetricRow, { metrics, timings }: Measured): MetricRow => ({
  ...row,
  metrics: { ...row.metrics, ...metrics },
  timings: { ...row.timings, ...validationTimings(timings) },
});

/** A validation runs rollouts too; their seconds have names of their own. */
function validationTimings(timings: MetricValues): MetricValues {
  return Object.fromEntries(
    Object.entries(timings).map(([name, value]) => [name === 'timing_s/testing' ? name : `val_${name}`, value]),
  );
}

/** Records of older petrel versions have only the seconds of jobs. */
function withPresentNames(timings: MetricValues): MetricValues {
  const added = Object.entries(jobSeconds).flatMap(([former, now]) => {
    const value = timings[former];
    return value === undefined || timings[now] !== undefined ? [] : [[now, value] as const];
  });
  return { ...timings, ...Object.fromEntries(added) };
}

const jobSeconds = {
  'timing_s/rollout': 'timing_s/gen',
  'timing_s/advantage': 'timing_s/adv',
  'timing_s/update': 'timing_s/update_actor',
} as const;
