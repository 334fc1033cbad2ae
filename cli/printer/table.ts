/** Tables: aligned columns without borders, upper-case heads, numbers on the right. */
import { displayWidth, fit } from './width.ts';

export interface Column<Row> {
  readonly head: string;
  readonly value: (row: Row) => string | number | undefined;
  /** The column that gives way when the terminal is narrow. */
  readonly shrink?: boolean;
  /** The head as it is written: it is a name to type. */
  readonly verbatim?: boolean;
  /** Numbers that come as texts. */
  readonly right?: boolean;
}

const GAP = '  ';
const LEAST = 8;

/** `columns`: width of the terminal. Missing values are "-". No trailing blanks, never wraps what may shrink. */
export function renderTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[], width = Number.MAX_SAFE_INTEGER): string {
  const cells = rows.map((row) => columns.map((column) => column.value(row)));
  const texts = [columns.map(({ head, verbatim }) => (verbatim === true ? head : head.toUpperCase())), ...cells.map((line) => line.map(cellText))];
  const widths = shrinkTo(width, columns, columns.map((_, index) => Math.max(...texts.map((line) => displayWidth(line[index] ?? '')))));
  const right = columns.map((column, index) => column.right === true || cells.some((line) => typeof line[index] === 'number'));
  return texts.map((line) => line.map((text, index) => pad(text, widths[index] ?? 0, right[index] ?? false)).join(GAP).trimEnd()).join('\n');
}

/** Two columns, names on the left: for one thing's details. */
export function renderFields(fields: readonly (readonly [name: string, value: string | number | undefined])[]): string {
  const width = Math.max(0, ...fields.map(([name]) => displayWidth(name)));
  return fields
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${pad(name, width, false)}${GAP}${cellText(value).replaceAll('\n', `\n${' '.repeat(width)}${GAP}`)}`.trimEnd())
    .join('\n');
}

function cellText(value: string | number | undefined): string {
  return value === undefined || value === '' ? '-' : String(value);
}

function pad(text: string, width: number, right: boolean): string {
  const cut = fit(text, width);
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(cut)));
  return right ? blanks + cut : cut + blanks;
}

function shrinkTo<Row>(width: number, columns: readonly Column<Row>[], wanted: readonly number[]): readonly number[] {
  const total = wanted.reduce((sum, one) => sum + one, 0) + GAP.length * (columns.length - 1);
  const index = columns.findIndex((column) => column.shrink === true);
  if (total <= width || index < 0) return wanted;
  return wanted.map((one, at) => (at === index ? Math.max(Math.min(one, LEAST), one - (total - width)) : one));
}
