/** The values on which two equal runs must agree, by iteration. */
import { reproducibleMetrics } from '../core/metrics.ts';
import type { BatchRecord, UpdateRecord } from '../core/records/schema.ts';

interface Records {
  readonly batch: BatchRecord;
  readonly update: UpdateRecord;
}

export const essencesOf = (iterations: readonly Records[]) =>
  iterations.map(({ batch, update }) => ({
    iteration: batch.iteration,
    tensors: batch.tensors,
    draws: batch.draws,
    trained: batch.components,
    counters: update.after,
    outcome: update.outcome,
    state: update.stateDigest,
    components: update.components,
    metrics: reproducibleMetrics(metricsOf({ batch, update })),
  }));

/** All metrics of an iteration. */
export const metricsOf = ({ batch, update }: Records): Record<string, number> =>
  ({ ...batch.metrics, ...update.metrics }) as Record<string, number>;
