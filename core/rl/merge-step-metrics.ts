/**
 * One row of metrics for several training steps in a row (verl: `MetricsAggregator` of the V1 trainer, which joins the
 * updates between two weight publications). The name decides; the first rule that fits wins:
 *
 *   the names in SUMS and LAST                              sum, last value
 *   `lr`, `…/lr`, `…_lr`                                    last value
 *   contains `timing_s/` or `timing_per_token_ms/`          sum
 *   contains `max`                                          largest value
 *   contains `min`                                          smallest value
 *   contains `sum` or `total`                               sum
 *   any other                                               mean, weighted by the samples of each step
 *
 * The rules look for parts of words, in lower case: `summary/x` and `consumed` are sums, `admin/x` is a minimum.
 * (Micro-batches of one step are joined by other rules, and case-sensitively: reduce-metrics.ts.)
 */
import { at } from '../at.ts';

/** What one step reported. */
export interface StepMetrics {
  readonly metrics: Readonly<Record<string, number>>;
  /** Samples that the step trained on. */
  readonly samples: number;
}

type MergeRule = 'last' | 'sum' | 'max' | 'min' | 'mean';

const SUMS: ReadonlySet<string> = new Set(
  ['training', 'validation'].flatMap((phase) => [
    `${phase}/off_policy/evicted_samples`,
    `${phase}/filter_groups/evicted_samples`,
    `${phase}/filter_groups/discarded_surplus_samples`,
    `${phase}/rollout_failure/evicted_samples`,
  ]),
);
const LAST: ReadonlySet<string> = new Set(['training/global_step', 'training/rollout_probs_diff_valid']);

/** Names in the order in which they first appear. Steps that lack a name take no part in its value. */
export function mergeStepMetrics(steps: readonly StepMetrics[]): Record<string, number> {
  const merged: Record<string, number> = {};
  for (const name of new Set(steps.flatMap(({ metrics }) => Object.keys(metrics)))) {
    merged[name] = mergeMetric(
      name,
      steps.filter(({ metrics }) => metrics[name] !== undefined),
    );
  }
  return withSpread(merged);
}

function mergeMetric(name: string, steps: readonly StepMetrics[]): number {
  const values = steps.map(({ metrics }) => Number(metrics[name]));
  switch (ruleOf(name)) {
    case 'last':
      return at(values, -1);
    case 'sum':
      return total(values);
    case 'max':
      return values.reduce((a, b) => Math.max(a, b));
    case 'min':
      return values.reduce((a, b) => Math.min(a, b));
    case 'mean':
      return weightedMean(
        values,
        steps.map((step) => weightOf(name, step)),
      );
  }
}

function ruleOf(name: string): MergeRule {
  if (SUMS.has(name)) return 'sum';
  if (LAST.has(name)) return 'last';
  const lower = name.toLowerCase();
  if (/(?:^|[/_])lr$/.test(lower)) return 'last';
  if (/timing_s\/|timing_per_token_ms\//.test(lower)) return 'sum';
  if (lower.includes('max')) return 'max';
  if (lower.includes('min')) return 'min';
  return /sum|total/.test(lower) ? 'sum' : 'mean';
}

const STALENESS = /^(.*\/off_policy\/evicted_samples)_staleness\/mean$/;

/** The mean staleness of evicted samples is weighted by their number, everything else by the samples of the step. */
function weightOf(name: string, { metrics, samples }: StepMetrics): number {
  const evicted = STALENESS.exec(name)?.[1];
  return evicted === undefined ? samples : Math.trunc(metrics[evicted] ?? samples);
}

/** The plain mean when all weights are 0. */
function weightedMean(values: readonly number[], weights: readonly number[]): number {
  const whole = total(weights);
  if (whole === 0) return total(values) / values.length;
  return total(values.map((value, i) => value * at(weights, i))) / whole;
}

/** The difference between the longest and the shortest of all steps is not one of the steps' differences. */
function withSpread(merged: Record<string, number>): Record<string, number> {
  const [max, min] = [merged['global_seqlen/max'], merged['global_seqlen/min']];
  if (max === undefined || min === undefined || merged['global_seqlen/minmax_diff'] === undefined) return merged;
  return { ...merged, 'global_seqlen/minmax_diff': max - min };
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
