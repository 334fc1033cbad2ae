/** `petrel metrics <run> [names...]`: a table by iteration. */
import { InvalidInputError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { flag, integerOption, word } from '../options.ts';
import { showNumber } from '../../core/quantities.ts';
import { renderTable } from '../printer/table.ts';
import { findRun } from '../../api/runs/find.ts';
import { listedMetrics, metricNames, metricRows, metricValue } from '../../api/runs/metric-rows.ts';
import type { MetricRow } from '../../api/runs/metric-rows.ts';

/** Shown when no names are given, as far as the run has them. */
const usual = [
  'critic/score/mean',
  'val/accuracy',
  'actor/pg_loss',
  'actor/kl_loss',
  'actor/entropy_loss',
  'train/loss',
  'actor/grad_norm',
  'response_length/mean',
  'training/failed_samples',
  'timing_s/rollout',
  'timing_s/update',
];

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const last = integerOption(input, 'last', 1);
  const found = await findRun(word(input, 0), context);
  const rows = await metricRows(found.log, last);
  const known = metricNames(rows);
  if (flag(input, 'list')) {
    const listed = listedMetrics(known);
    printer.data(listed, () =>
      renderTable(listed, [
        { head: 'metric', value: ({ name }) => name },
        { head: 'unit', value: ({ unit }) => unit },
        { head: 'what it is', value: ({ doc }) => doc },
      ]),
    );
    return undefined;
  }
  const wanted = input.words.slice(1);
  const wrong = rows.length === 0 ? undefined : wanted.find((name) => !known.includes(name));
  if (wrong !== undefined) throw unknownName(wrong, known, found.runId);
  const shown = wanted.length > 0 ? wanted : usual.filter((name) => known.includes(name));
  printer.data(wanted.length > 0 ? rows.map((row) => only(row, wanted)) : rows, () =>
    rows.length === 0 ? 'no iterations yet' : table(rows, shown),
  );
  if (wanted.length === 0 && rows.length > 0 && !printer.json)
    printer.notice(`${known.length - shown.length} more: petrel metrics ${found.runId} --list`);
  return undefined;
}

function unknownName(name: string, known: readonly string[], runId: string): InvalidInputError {
  const meant = nearest(name, known) ?? known.find((one) => one.includes(name));
  return new InvalidInputError(`${runId} has no metric ${name}`, {
    hint: meant === undefined ? `petrel metrics ${runId} --list` : `did you mean ${meant}?`,
  });
}

function only({ iteration, term, metrics, timings }: MetricRow, names: readonly string[]): MetricRow {
  const pick = (values: MetricRow['metrics']) =>
    Object.fromEntries(Object.entries(values).filter(([name]) => names.includes(name)));
  return { iteration, term, metrics: pick(metrics), timings: pick(timings) };
}

function table(rows: readonly MetricRow[], names: readonly string[]): string {
  const cell = (row: MetricRow, name: string) => {
    const value = metricValue(row, name);
    return value === undefined ? undefined : showNumber(Number(value));
  };
  return renderTable(rows, [
    { head: 'iteration', value: ({ iteration }) => iteration },
    ...(new Set(rows.map(({ term }) => term)).size > 1 ? [{ head: 'term', value: ({ term }: MetricRow) => term }] : []),
    ...names.map((name) => ({ head: name, verbatim: true, right: true, value: (row: MetricRow) => cell(row, name) })),
  ]);
}
