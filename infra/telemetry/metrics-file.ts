/**
 * A run's metrics as JSON lines, a row for each committed iteration, in the form of verl's file logger with the term
 * added: `{"step": 3, "term": 1, "data": {"actor/loss": 0.1}}`. Rows are derived from records, so a row is never
 * written twice; a row that an earlier process left unfinished is written again, and rows of iterations that were
 * discarded go.
 */
import { mkdir, open, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { endedStates } from '../../core/run-states.ts';
import { metricRowsFrom } from '../../log/run/metric-rows.ts';
import type { MetricRow } from '../../log/run/metric-rows.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';
import { lastLine } from './last-line.ts';

const writtenRow = z.object({ step: z.int(), term: z.int() });
type WrittenRow = z.infer<typeof writtenRow>;

/** Brings the file up to the end of the log. Resolves with true when the run has ended: the file is complete. */
export async function writeMetricsFile(path: string, log: RunLog): Promise<boolean> {
  const state = (await log.status.newest())?.state;
  const hasEnded = state !== undefined && endedStates.has(state);
  const head = await log.head();
  if (head === undefined) return hasEnded;
  await mkdir(dirname(path), { recursive: true });
  const last = await lastRow(path);
  const isFirst = last === undefined || !(await isInLog(last, head, log));
  if (!isFirst && last.step >= head.position) return hasEnded;
  const rows = await metricRowsFrom(isFirst ? 0 : last.step + 1, head, log);
  const whole = hasEnded || (await isValidated(rows.at(-1), head, log)) ? rows : rows.slice(0, -1);
  await (isFirst ? replace(path, whole) : append(path, whole));
  return hasEnded;
}

/** False for the newest iteration while its validation is still to come. */
async function isValidated(row: MetricRow | undefined, head: Head, log: RunLog): Promise<boolean> {
  if (row === undefined || row.iteration !== head.position) return true;
  if (Object.keys(row.metrics).some((name) => name.startsWith('val'))) return true;
  return !(await log.evaluations.dueCheck(head.termRecord.revision))(row.iteration);
}

/** A run that went back has other iterations, of a newer term. Row 0 holds the validation of the base only. */
async function isInLog({ step, term }: WrittenRow, head: Head, log: RunLog): Promise<boolean> {
  if (step > head.position) return false;
  if (step <= (await log.first())) return true;
  return (await log.iteration(step, head.termRecord)).update.record.term === term;
}

async function lastRow(path: string): Promise<WrittenRow | undefined> {
  const line = await lastLine(path);
  if (line === undefined) return undefined;
  try {
    return writtenRow.parse(JSON.parse(line));
  } catch {
    return undefined; // not a row: the file is written again
  }
}

async function append(path: string, rows: readonly MetricRow[]): Promise<void> {
  if (rows.length === 0) return;
  const file = await open(path, 'a');
  try {
    await file.appendFile(linesOf(rows));
    await file.datasync();
  } finally {
    await file.close();
  }
}

async function replace(path: string, rows: readonly MetricRow[]): Promise<void> {
  await writeFile(`${path}.partial`, linesOf(rows));
  await rename(`${path}.partial`, path);
}

const linesOf = (rows: readonly MetricRow[]): string => rows.map((row) => `${JSON.stringify(lineOf(row))}\n`).join('');

const lineOf = ({ iteration, term, metrics, timings }: MetricRow) => ({
  step: iteration,
  term,
  data: { ...metrics, ...timings },
});
