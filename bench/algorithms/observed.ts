/** What a finished run shows: its metrics by iteration, counts from its records, and its validations. */
import { metricRows } from '../../log/run/metric-rows.ts';
import type { RunLog } from '../../log/run/run-log.ts';

/** Values by metric, in the order of iterations. An iteration that lacks a metric has no entry in its list. */
export type Series = ReadonlyMap<string, readonly number[]>;

export interface Validation {
  readonly accuracy: number;
  /** Responses that were judged. */
  readonly questions: number;
}

export interface Observed {
  readonly iterations: number;
  readonly series: Series;
  /** Validations of the base and of every policy that was validated. */
  readonly validations: readonly Validation[];
}

export async function observe(log: RunLog): Promise<Observed> {
  const values = new Map<string, number[]>();
  const add = (name: string, value: number) => {
    const known = values.get(name);
    if (known === undefined) values.set(name, [value]);
    else known.push(value);
  };
  for (const { metrics } of await metricRows(log))
    for (const [name, value] of Object.entries(metrics)) add(name, Number(value));
  let iterations = 0;
  for await (const { batch, update } of log.iterations()) {
    iterations += 1;
    const { draws, passedOver = [] } = batch.record;
    add('record/draws_filtered', draws.filter(({ fate }) => fate === 'filtered').length);
    add('record/draws_refilled', draws.filter(({ fate, wave = 0 }) => fate === 'trained' && wave > 0).length);
    add(
      'record/draws_passed_over',
      passedOver.reduce((sum, [start, end]) => sum + end - start, 0),
    );
    for (const [component, { steps }] of Object.entries(update.record.components))
      add(`record/optimizer_steps/${component}`, steps.filter(({ taken }) => taken).length);
  }
  return { iterations, series: values, validations: await log.evaluations.all() };
}
