/** Metrics of a run by name. */
import { metricInfo, presentNames } from '../../core/metrics.ts';
import type { MetricInfo } from '../../core/metrics.ts';
import type { MetricRow } from '../../log/run/metric-rows.ts';

export { metricRows } from '../../log/run/metric-rows.ts';
export type { MetricRow };

type Values = MetricRow['metrics'];

/** The name in the table of metrics. A metric of a validation's jobs starts with `val_`. */
export const inTable = (name: string): string => name.replace(/^val_(?=timing_s\/|rollout\/|reward\/)/, '');

/** Every name that the rows have, ascending. A metric with an old and a new name is listed under the new one only. */
export function metricNames(rows: readonly MetricRow[]): string[] {
  const all = [...new Set(rows.flatMap(({ metrics, timings }) => [...Object.keys(metrics), ...Object.keys(timings)]))];
  return all.filter((name) => presentNames(inTable(name), all).length === 0).sort();
}

/**
 * The metrics that a word of the command line selects: a name, a pattern with * and ?, or a name from an older petrel
 * version. Empty when the rows have none of them.
 */
export function metricNamesMeant(word: string, rows: readonly MetricRow[]): string[] {
  const names = metricNames(rows);
  if (/[*?]/.test(word)) return names.filter((name) => globPattern(word).test(name));
  return rows.some((row) => metricValue(row, word) !== undefined) ? [word] : presentNames(word, names);
}

/** `*` matches any text, slashes too; `?` matches one character. */
function globPattern(glob: string): RegExp {
  const source = glob
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`);
}

export function metricValue({ metrics, timings }: MetricRow, name: string): Values[string] | undefined {
  return metrics[name] ?? timings[name];
}

export type ListedMetric = Pick<MetricInfo, 'name' | 'unit' | 'doc'> & Partial<Pick<MetricInfo, 'direction' | 'kind'>>;

/** The table entries of these metrics; a name that is not in the table has empty texts. */
export function listMetrics(names: readonly string[]): ListedMetric[] {
  return names.map((name) => ({
    ...(metricInfo(inTable(name)) ?? { unit: '', doc: '' }),
    name,
  }));
}
