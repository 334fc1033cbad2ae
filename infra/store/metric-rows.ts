/** Metrics of a run by iteration, from its batch, update and validation records. */
import type { BatchRecord } from '../../core/records/schema.ts';
import type { Head, RunLog } from './run-log.ts';

type Values = BatchRecord['metrics'];

export interface MetricRow {
  /** Policy version; version 0 has only a validation. */
  readonly iteration: number;
  readonly term: number;
  readonly metrics: Values;
  /** Seconds, speed and memory. Those of a validation's jobs start with `val_timing_s/`. */
  readonly timings: Values;
}

/** Records that are read in parallel. */
const together = 16;

/** Ascending. `last`: only the newest iterations. */
export async function metricRows(log: RunLog, last = Number.POSITIVE_INFINITY): Promise<MetricRow[]> {
  const head = await log.head();
  return head === undefined ? [] : metricRowsFrom(head.position - last + 1, head, log);
}

/** Ascending: from this iteration to the head's, also when the log has grown since the head was read. */
export async function metricRowsFrom(iteration: number, head: Head, log: RunLog): Promise<MetricRow[]> {
  const first = await log.first();
  const from = Math.max(first, iteration);
  const evaluations = (await log.evaluations(from)).filter((one) => one.iteration <= head.position);
  const rows = new Map<number, MetricRow>();
  for (let start = Math.max(first + 1, from); start <= head.position; start += together) {
    const iterations = Array.from({ length: Math.min(together, head.position - start + 1) }, (_, i) => start + i);
    for (const { batch, update } of await Promise.all(iterations.map((k) => log.iteration(k, head.termRecord)))) {
      const { iteration, term } = update.record;
      rows.set(iteration, {
        iteration,
        term,
        metrics: { ...batch.record.metrics, ...update.record.metrics },
        timings: withPresentNames({ ...batch.record.timings, ...update.record.timings }),
      });
    }
  }
  for (const { iteration, term, metrics, timings } of evaluations) {
    const row = rows.get(iteration) ?? { iteration, term, metrics: {}, timings: {} };
    rows.set(iteration, {
      ...row,
      metrics: { ...row.metrics, ...metrics },
      timings: { ...row.timings, ...validationTimings(timings) },
    });
  }
  return [...rows.values()].sort((a, b) => a.iteration - b.iteration);
}

/** A validation runs rollouts too; their seconds have names of their own. */
function validationTimings(timings: Values): Values {
  return Object.fromEntries(
    Object.entries(timings).map(([name, value]) => [name === 'timing_s/testing' ? name : `val_${name}`, value]),
  );
}

/** Records of older petrel versions have only the seconds of jobs. */
function withPresentNames(timings: Values): Values {
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
