/**
 * Metrics of a range of iterations in columns: FORMAT.md, "Metrics in columns". A chunk repeats what records say, part
 * by part, so that a row made of it equals the row that is made of the records.
 */
import { z } from 'zod';
import { recordFormat } from './schema.ts';
import type { BatchRecord } from './schema.ts';

/** Metrics or seconds by name, as in a record. */
export type MetricValues = BatchRecord['metrics'];
type MetricValue = MetricValues[string];

/** Values by name, one for each row. `null`: the row has none. */
export type Columns = Readonly<Record<string, readonly (MetricValue | null)[]>>;

/** The two tables of values that a record has. */
export interface Measured {
  readonly metrics: MetricValues;
  readonly timings: MetricValues;
}

/** What the records of an iteration say. */
export interface MeasuredIteration {
  readonly iteration: number;
  readonly batch: Measured;
  readonly update: Measured;
}

/** What a validation record says, and the term whose folder holds it. */
export interface MeasuredValidation extends Measured {
  readonly term: number;
  readonly iteration: number;
}

const specialNumbers: ReadonlySet<unknown> = new Set([null, 'NaN', 'Infinity', '-Infinity']);
const isCell = (value: unknown): boolean =>
  typeof value === 'number' ? Number.isFinite(value) : specialNumbers.has(value);

/** A chunk has up to a million cells, so they are checked without a zod type for each. */
const columns = z.custom<Columns>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((cells) => Array.isArray(cells) && cells.every(isCell)),
  'expected numbers by name',
);
const measured = z.object({ metrics: columns, timings: columns });
const position = z.int().nonnegative();

export const metricChunk = z.object({
  format: z.literal(recordFormat),
  runId: z.string(),
  /** The term whose folder holds the last iteration. Its chain of parents decides all iterations before that. */
  term: z.int().positive(),
  /** The iterations, dense: [first, last]. */
  first: z.int().positive(),
  last: z.int().positive(),
  batch: measured,
  update: measured,
  /** Validation records that existed: term and position of each, in the order of the columns' rows. */
  validations: measured.extend({ at: z.array(z.tuple([z.int().positive(), position])) }),
});
export type MetricChunk = z.infer<typeof metricChunk>;
type MeasuredColumns = MetricChunk['batch'];

/** `iterations`: dense and ascending, at least one. */
export function chunkOf(
  { runId, term }: Pick<MetricChunk, 'runId' | 'term'>,
  iterations: readonly MeasuredIteration[],
  validations: readonly MeasuredValidation[],
): MetricChunk {
  return {
    format: recordFormat,
    runId,
    term,
    first: iterations[0]?.iteration ?? 0,
    last: iterations.at(-1)?.iteration ?? 0,
    batch: measuredColumns(iterations.map(({ batch }) => batch)),
    update: measuredColumns(iterations.map(({ update }) => update)),
    validations: {
      at: validations.map(({ term: of, iteration }) => [of, iteration]),
      ...measuredColumns(validations),
    },
  };
}

/** Undefined for a chunk whose columns have another length than its range. */
export function rowsOf(
  chunk: MetricChunk,
): { readonly iterations: MeasuredIteration[]; readonly validations: MeasuredValidation[] } | undefined {
  const { first, last, batch, update, validations } = chunk;
  const count = last - first + 1;
  if (!isOfLength(batch, count) || !isOfLength(update, count)) return undefined;
  if (!isOfLength(validations, validations.at.length)) return undefined;
  return {
    iterations: Array.from({ length: Math.max(0, count) }, (_, i) => ({
      iteration: first + i,
      batch: measuredAt(batch, i),
      update: measuredAt(update, i),
    })),
    validations: validations.at.map(([term, iteration], i) => ({ term, iteration, ...measuredAt(validations, i) })),
  };
}

const measuredColumns = (rows: readonly Measured[]): MeasuredColumns => ({
  metrics: columnsOf(rows.map(({ metrics }) => metrics)),
  timings: columnsOf(rows.map(({ timings }) => timings)),
});

function columnsOf(rows: readonly MetricValues[]): Columns {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return Object.fromEntries(names.map((name) => [name, rows.map((row) => row[name] ?? null)]));
}

const measuredAt = ({ metrics, timings }: MeasuredColumns, row: number): Measured => ({
  metrics: valuesAt(metrics, row),
  timings: valuesAt(timings, row),
});

/** The names keep their order, which is that of a record: ascending. */
const valuesAt = (from: Columns, row: number): MetricValues =>
  Object.fromEntries(
    Object.entries(from).flatMap(([name, cells]) => {
      const value = cells[row] ?? null;
      return value === null ? [] : [[name, value] as const];
    }),
  );

const isOfLength = ({ metrics, timings }: MeasuredColumns, rows: number): boolean =>
  [metrics, timings].every((table) => Object.values(table).every((cells) => cells.length === rows));

/** Iterations in a chunk, ascending. A chunk of each size begins after a multiple of it. */
export const chunkSizes = [100, 1000] as const;

/** A range of iterations, both ends included. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

/** The range of the grid of this size that holds an iteration. */
function windowOf(size: number, iteration: number): Range {
  const first = iteration - ((iteration - 1) % size);
  return { first, last: first + size - 1 };
}

/** The ranges of the grid that hold iterations of `wanted`, and of each the wanted part. */
export function windowsIn(size: number, wanted: Range): { readonly window: Range; readonly part: Range }[] {
  const found: { window: Range; part: Range }[] = [];
  for (let at = wanted.first; at <= wanted.last; ) {
    const window = windowOf(size, at);
    found.push({ window, part: { first: at, last: Math.min(window.last, wanted.last) } });
    at = window.last + 1;
  }
  return found;
}
