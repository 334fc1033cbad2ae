/** `petrel metrics <run> [names...] [--follow] [--plot]`: a table by iteration, or curves. */
import { InvalidInputError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { counted } from '../../core/quantities.ts';
import {
  findRun,
  followMetrics,
  listMetrics,
  metricNames,
  metricNamesMeant,
  metricRows,
  patientLog,
} from '../../api/index.ts';
import type { MetricRow } from '../../api/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { untilInterrupted } from '../interrupt.ts';
import { EXIT } from '../exit-codes.ts';
import type { ExitCode } from '../exit-codes.ts';
import { flag, integerOption, word } from '../options.ts';
import type { Printer } from '../printer/printer.ts';
import { widthFor } from '../printer/table.ts';
import { metricList, metricPlots, metricTable, onlyNames, RowPrinter, usualNames } from '../runs/metrics-text.ts';

/** Shown before those that come. */
const rowsBefore = 10;

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const [follow, plotted] = [flag(input, 'follow'), flag(input, 'plot')];
  if (follow && plotted)
    throw new InvalidInputError('--follow and --plot exclude each other', { hint: 'leave one out' });
  const last = integerOption(input, 'last', 1);
  const found = await findRun(word(input, 0), context);
  const words = input.words.slice(1);
  if (follow) {
    const rows = new RowPrinter(words, await metricRows(found.log, last ?? rowsBefore), printer);
    const { interrupted } = await untilInterrupted((signal) =>
      followMetrics(patientLog(found.log, { signal, say: printer.notice }), {
        last: last ?? rowsBefore,
        signal,
        home: context.home,
        take: (row) => rows.show(row),
      }),
    );
    return interrupted ? EXIT.interrupted : EXIT.ok;
  }
  const rows = await metricRows(found.log, last);
  if (flag(input, 'list')) list(words.length > 0 ? meant(words, rows, found.runId) : metricNames(rows), printer);
  else show(rows, rows.length === 0 ? [] : meant(words, rows, found.runId), found.runId, plotted, printer);
  return EXIT.ok;
}

function list(names: readonly string[], printer: Printer): void {
  const listed = listMetrics(names);
  printer.data(listed, () => metricList(listed, widthFor(printer.stdout)));
}

/** `wanted`: none means the usual ones, all of them with --json. */
function show(
  rows: readonly MetricRow[],
  wanted: readonly string[],
  runId: string,
  plotted: boolean,
  printer: Printer,
): void {
  const shown = wanted.length > 0 ? wanted : usualNames(metricNames(rows), plotted);
  printer.data(wanted.length > 0 ? rows.map((row) => onlyNames(row, wanted)) : rows, () => {
    if (rows.length === 0) return 'no iterations yet';
    if (plotted) return metricPlots(rows, shown, printer.stdout.columns);
    return metricTable(rows, shown, { width: widthFor(printer.stdout), dropColumns: wanted.length === 0 });
  });
  if (wanted.length === 0 && rows.length > 0 && !printer.json)
    printer.notice(`All ${counted(metricNames(rows).length, 'name')}: petrel metrics ${runId} --list`);
}

/** The metrics that the words mean, each once. Throws InvalidInputError for a word that means none. */
function meant(words: readonly string[], rows: readonly MetricRow[], runId: string): string[] {
  const names = words.flatMap((one) => {
    const found = metricNamesMeant(one, rows);
    if (found.length === 0) throw unknownName(one, metricNames(rows), runId);
    return found;
  });
  return [...new Set(names)];
}

function unknownName(name: string, known: readonly string[], runId: string): InvalidInputError {
  const close = nearest(name, known) ?? known.find((one) => one.includes(name));
  return new InvalidInputError(`${runId} has no metric ${name}`, {
    hint: close === undefined ? `petrel metrics ${runId} --list` : `did you mean ${close}?`,
  });
}
