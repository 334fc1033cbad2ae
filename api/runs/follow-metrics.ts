/** Metrics of a run as its iterations are committed. */
import { isValidationDue, parseRecipe, totalIterations } from '../../core/recipe/index.ts';
import { feedStart } from '../../core/run-feed.ts';
import type { TakenNews } from '../../core/run-feed.ts';
import { endedStates } from '../../core/run-states.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { newestInChunks } from '../../log/run/metric-chunks.ts';
import { metricRowsFrom, rowOf, withValidation } from '../../log/run/metric-rows.ts';
import { followFeed } from './run-feed.ts';
import type { MetricRow } from '../../log/run/metric-rows.ts';

export interface FollowMetricsOptions {
  /** First report this many iterations that exist already. */
  readonly last: number;
  /** Ends the following. */
  readonly signal: AbortSignal;
  /** Home of the stack that may drive the run. Without it only the store is read. */
  readonly home?: string;
  /** Called for each iteration once, in order. */
  readonly take: (row: MetricRow) => void;
}

/** Resolves when the run has ended, or on the signal. Where a validation is due, the row is reported only with it. */
export async function followMetrics(log: RunLog, options: FollowMetricsOptions): Promise<void> {
  const { last, signal, take, home } = options;
  const isDue = await validations(log);
  const end = await log.end((term) => newestInChunks(log, term));
  const shown = (end?.position ?? 0) - last;
  const waiting = new WaitingRows(isDue, take, shown);
  const before = end === undefined ? [] : await metricRowsFrom(end.position - last + 1, end, log);
  waiting.add(before);
  const place = { ...feedStart, ...(end && { term: end.termRecord.term, iteration: end.position }) };
  const validated = Math.max(-1, shown, ...before.flatMap((row) => (hasValidation(row) ? [row.iteration] : [])));
  if (signal.aborted) return;
  await followFeed(
    log,
    { home },
    {
      from: { ...place, validated },
      signal,
      take: (news) => waiting.take(news),
      looked: () => waiting.flush(false),
    },
  );
  if (waiting.hasEnded && !signal.aborted) waiting.flush(true);
}

/** Rows in order, until they are whole. */
class WaitingRows {
  readonly #isDue: (position: number) => boolean;
  readonly #give: (row: MetricRow) => void;
  readonly #rows = new Map<number, MetricRow>();
  #given: number;
  #newest = -1;
  hasEnded = false;

  /** `given`: rows up to this iteration are not wanted. */
  constructor(isDue: (position: number) => boolean, give: (row: MetricRow) => void, given: number) {
    this.#isDue = isDue;
    this.#give = give;
    this.#given = given;
  }

  add(rows: readonly MetricRow[]): void {
    for (const row of rows) this.#rows.set(row.iteration, row);
    this.#newest = Math.max(this.#newest, rows.at(-1)?.iteration ?? -1);
  }

  take({ status, wentBackTo, iterations, validations }: TakenNews): void {
    if (status !== undefined) this.hasEnded = endedStates.has(status.state);
    if (wentBackTo !== undefined) {
      for (const iteration of [...this.#rows.keys()]) if (iteration > wentBackTo) this.#rows.delete(iteration);
      this.#newest = Math.min(this.#newest, wentBackTo);
    }
    this.add(iterations.map((one) => rowOf(one)));
    for (const one of validations) {
      const row = this.#rows.get(one.iteration);
      const isLate = one.iteration <= this.#given;
      if (!isLate) this.add([withValidation(row ?? { ...one, metrics: {}, timings: {} }, one)]);
    }
    this.flush(false);
  }

  /** Gives each iteration once. The newest one waits for its validation, except at the end of the run. */
  flush(hasEnded: boolean): void {
    for (const [iteration, row] of [...this.#rows].sort(([a], [b]) => a - b)) {
      if (iteration <= this.#given) this.#rows.delete(iteration);
      else if (!hasEnded && iteration === this.#newest && this.#isDue(iteration) && !hasValidation(row)) return;
      else {
        this.#rows.delete(iteration);
        this.#given = iteration;
        this.#give({ iteration, term: row.term, metrics: row.metrics, timings: row.timings });
      }
    }
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
