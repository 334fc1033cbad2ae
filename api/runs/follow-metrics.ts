/** Metrics of a run as its iterations are committed. */
import { setTimeout as delay } from 'node:timers/promises';
import { isValidationDue, parseRecipe, totalIterations } from '../../core/recipe/index.ts';
import { endedStates } from '../../core/run-states.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import { metricRows } from './metric-rows.ts';
import type { MetricRow } from './metric-rows.ts';

const lookMs = 500;

export interface FollowMetricsOptions {
  /** So many iterations that are there already. */
  readonly last: number;
  /** Ends the following. */
  readonly signal: AbortSignal;
  /** Called for each iteration once, in order. */
  readonly take: (row: MetricRow) => void;
}

/** Resolves when the run has ended, or on the signal. A row comes when its validation is there, where one is due. */
export async function followMetrics(log: RunLog, { last, signal, take }: FollowMetricsOptions): Promise<void> {
  const isDue = await validations(log);
  let taken: number | undefined;
  while (!signal.aborted) {
    const ended = endedStates.has((await log.status())?.state ?? 'queued');
    const position = (await log.head())?.position ?? 0;
    const wanted = taken === undefined ? last : position - taken + 1;
    for (const row of wanted > 0 ? await metricRows(log, wanted) : []) {
      if (taken !== undefined && row.iteration <= taken) continue;
      const waits = row.iteration === position && isDue(position) && !hasValidation(row);
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
