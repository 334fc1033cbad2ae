/** Metrics of a run as its iterations are committed. */
import { setTimeout as delay } from 'node:timers/promises';
import { isValidationDue, parseRecipe, totalIterations } from '../../core/recipe/index.ts';
import { endedStates } from '../../core/run-states.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import { metricRowsFrom } from '../../infra/store/metric-rows.ts';
import type { MetricRow } from '../../infra/store/metric-rows.ts';

const lookMs = 500;

export interface FollowMetricsOptions {
  /** First report this many iterations that exist already. */
  readonly last: number;
  /** Ends the following. */
  readonly signal: AbortSignal;
  /** Called for each iteration once, in order. */
  readonly take: (row: MetricRow) => void;
}

/** Resolves when the run has ended, or on the signal. Where a validation is due, the row is reported only with it. */
export async function followMetrics(log: RunLog, { last, signal, take }: FollowMetricsOptions): Promise<void> {
  const isDue = await validations(log);
  let taken: number | undefined;
  while (!signal.aborted) {
    const ended = endedStates.has((await log.status())?.state ?? 'queued');
    const head = await log.head();
    const from: number = taken === undefined ? (head?.position ?? 0) - last + 1 : taken + 1;
    for (const row of head === undefined ? [] : await metricRowsFrom(from, head, log)) {
      const waits = row.iteration === head?.position && isDue(row.iteration) && !hasValidation(row);
      if (waits && !ended) break;
      take(row);
      taken = row.iteration;
    }
    if (ended) return;
    await delay(lookMs, undefined, { signal }).catch(() => {});
  }
}

async function validations(log: RunLog): Promise<(position: number) => boolean> {
  const { recipe, inputs } = await log.revision();
  const parsed = parseRecipe(recipe);
  const iterations = totalIterations(parsed, inputs.trainRows);
  return (position) => inputs.validation !== undefined && isValidationDue(parsed, position, iterations);
}

const hasValidation = ({ metrics }: MetricRow): boolean =>
  Object.keys(metrics).some((name) => name.startsWith('val-core/') || name === 'val/accuracy');
