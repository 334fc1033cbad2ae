/** Metrics of a run by name. */
import { metricInfo, presentNames } from '../../core/metrics.ts';
import type { MetricInfo } from '../../core/metrics.ts';
import type { MetricRow } from '../../infra/store/metric-rows.ts';

export { metricRows } from '../../infra/store/metric-rows.ts';
export type { MetricRow };

type Values = MetricRow['metrics'];

/** The name in the table of metrics: what a validation reports of its rollouts has `val_` before it. */
export const inTable = (name: string): string => name.replace(/^val_(?=timing_s\/|rollout\/)/, '');

/** Every name that the rows have, ascending; of two names for the same thing only the present one. */
export function metricNames(rows: readonly MetricRow[]): string[] {
  const all = [...new Set(rows.flatMap(({ metrics, timings }) => [...Object.keys(metrics), ...Object.keys(timings)]))];
  return all.filter((name) => presentNames(inTable(name), all).length === 0).sort();
}

/**
 * The metrics that a word of the command line means: a name, a pattern with * and ?, or a name of an older petrel. Empty when
 * the rows have none.
 */
export function namesMeant(word: string, rows: readonly MetricRow[]): string[] {
  const names = metricNames(rows);
  if (/[*?]/.test(word)) return names.filter((name) => globPattern(word).test(name));
  return rows.some((row) => metricValue(row, word) !== undefined) ? [word] : presentNames(word, names);
}

/** `*` stands for anything, slashes too; `?` for one character. */
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

/** What the table of metrics says of the names; those that are not in it stand with empty texts. */
export function listedMetrics(names: readonly string[]): ListedMetric[] {
  return names.map((name) => ({
    ...(metricInfo(inTable(name)) ?? { unit: '', doc: '' }),
    name,
  }));
}
