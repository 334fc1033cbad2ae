/** Metrics as tables and curves. */
import { metricNames, metricNamesMeant, metricValue } from '../../api/index.ts';
import type { ListedMetric, MetricRow } from '../../api/index.ts';
import { showNumber } from '../../core/quantities.ts';
import { plot } from '../printer/plot.ts';
import type { Printer } from '../printer/printer.ts';
import { renderTable, widthFor } from '../printer/table.ts';
import type { Column } from '../printer/table.ts';
import { displayWidth } from '../printer/width.ts';
import { wrapText } from '../printer/wrap.ts';

/** Shown when no names are given, as far as the run has them, the most important first. */
const usual = [
  /^critic\/score\/mean$/,
  /^train\/loss$/,
  /^val-core\/(?:.+\/)?(?:acc|score|reward)\/mean@\d+$/,
  /^val\/accuracy$/,
  /^actor\/entropy$/,
  /^actor\/grad_norm$/,
  /^actor\/pg_loss$/,
  /^actor\/kl_loss$/,
  /^response_length\/mean$/,
  /^response_length\/clip_ratio$/,
  /^training\/groups_without_signal$/,
  /^training\/failed_samples$/,
  /^timing_s\/(step|gen|update_actor)$/,
  /^perf\/response_throughput$/,
];
/** The curves that say whether a run learns. */
const curves = 4;

export function usualNames(known: readonly string[], plotted = false): string[] {
  return (plotted ? usual.slice(0, curves) : usual).flatMap((pattern) => known.filter((name) => pattern.test(name)));
}

/** The row with these metrics only. */
export function onlyNames({ iteration, term, metrics, timings }: MetricRow, names: readonly string[]): MetricRow {
  const pick = (values: MetricRow['metrics']) =>
    Object.fromEntries(Object.entries(values).filter(([name]) => names.includes(name)));
  return { iteration, term, metrics: pick(metrics), timings: pick(timings) };
}

export interface MetricTableOptions {
  /** Width of the terminal; undefined: as wide as the table gets. */
  readonly width: number | undefined;
  /** Columns that do not fit are left out, the last first; false: they come in a further table below. */
  readonly dropColumns: boolean;
}

export function metricTable(rows: readonly MetricRow[], names: readonly string[], options: MetricTableOptions): string {
  const { width, dropColumns } = options;
  const manyTerms = new Set(rows.map(({ term }) => term)).size > 1;
  const columns = names.map((name, i) => ({ ...columnOf(name), ...(dropColumns ? { spare: names.length - i } : {}) }));
  if (width === undefined || dropColumns) return renderTable(rows, [...keyColumns(manyTerms), ...columns], width);
  return parts(rows, columns, width - keyWidth(manyTerms))
    .map((part) => renderTable(rows, [...keyColumns(manyTerms), ...part]))
    .join('\n\n');
}

function keyColumns(manyTerms: boolean): Column<MetricRow>[] {
  const term: Column<MetricRow> = { head: 'term', value: ({ term }) => term };
  return [{ head: 'iteration', value: ({ iteration }) => iteration }, ...(manyTerms ? [term] : [])];
}

/** Width of `ITERATION`, and of `TERM` with the gap before it. */
const keyWidth = (manyTerms: boolean) => 'iteration'.length + (manyTerms ? '  term'.length : 0);

function columnOf(name: string): Column<MetricRow> {
  return { head: name, verbatim: true, right: true, value: (row) => cell(row, name) };
}

function cell(row: MetricRow, name: string): string | undefined {
  const value = metricValue(row, name);
  return value === undefined ? undefined : showNumber(Number(value));
}

/** Columns in lists that each fit a width. */
function parts(
  rows: readonly MetricRow[],
  columns: readonly Column<MetricRow>[],
  width: number,
): Column<MetricRow>[][] {
  const lists: Column<MetricRow>[][] = [];
  let left = 0;
  for (const column of columns) {
    const cells = rows.map((row) => displayWidth(String(column.value(row) ?? '-')));
    const wanted = 2 + Math.max(displayWidth(column.head), ...cells);
    if (lists.length === 0 || wanted > left) {
      lists.push([]);
      left = width;
    }
    lists.at(-1)?.push(column);
    left -= wanted;
  }
  return lists;
}

/** A table of names, units and docs; where that is too wide, each doc below its name. */
export function metricList(listed: readonly ListedMetric[], width: number | undefined): string {
  const table = renderTable(listed, [
    { head: 'metric', value: ({ name }) => name },
    { head: 'unit', value: ({ unit }) => unit },
    { head: 'what it is', value: ({ doc }) => doc },
  ]);
  if (width === undefined || table.split('\n').every((line) => displayWidth(line) <= width)) return table;
  return listed
    .map(({ name, unit, doc }) => `${name}${unit === '' ? '' : ` (${unit})`}\n${wrapText(doc, width, '    ')}`)
    .join('\n');
}

/** One curve under the other. */
export function metricPlots(rows: readonly MetricRow[], names: readonly string[], columns: number): string {
  return names
    .map((name) => {
      const points = rows.flatMap((row) => {
        const value = metricValue(row, name);
        return value === undefined ? [] : [{ x: row.iteration, y: Number(value) }];
      });
      return plot(name, points, { columns: Math.min(columns, widestPlot) });
    })
    .join('\n\n');
}

const widestPlot = 120;

/** Prints rows as they come, under one head: a column is as wide as its name. With --json one line of JSON each. */
export class RowPrinter {
  readonly #words: readonly string[];
  readonly #before: readonly MetricRow[];
  readonly #printer: Printer;
  #names: readonly string[] | undefined;

  /**
   * `words`: names and patterns; none means the usual ones. `before`: rows that are there already, to know what a run
   * reports.
   */
  constructor(words: readonly string[], before: readonly MetricRow[], printer: Printer) {
    this.#words = words;
    this.#before = before;
    this.#printer = printer;
  }

  show(row: MetricRow): void {
    const isFirst = this.#names === undefined;
    const names = (this.#names ??= this.#choose([...this.#before, row]));
    this.#printer.item(this.#words.length === 0 ? row : onlyNames(row, names), () =>
      this.#lines(row, names)
        .slice(isFirst ? 0 : 1)
        .join('\n'),
    );
  }

  /** A word that means nothing yet stays as it is: the metric may come. */
  #choose(rows: readonly MetricRow[]): readonly string[] {
    if (this.#words.length === 0) return usualNames(metricNames(rows));
    const names = this.#words.map((one) => [one, metricNamesMeant(one, rows)] as const);
    return [...new Set(names.flatMap(([one, found]) => (found.length === 0 ? [one] : found)))];
  }

  #lines(row: MetricRow, names: readonly string[]): string[] {
    const columns = names.map((name, i) => ({ ...columnOf(name), spare: names.length - i }));
    return renderTable([row], [...keyColumns(false), ...columns], widthFor(this.#printer.stdout)).split('\n');
  }
}
