/** Tables: aligned columns without borders, upper-case heads, numbers on the right. */
import { printableStyled } from './printable.ts';
import type { Terminal } from './terminal.ts';
import { displayWidth, fit } from './width.ts';
import { wrapOwnText } from './wrap.ts';

export interface Column<Row> {
  readonly head: string;
  readonly value: (row: Row) => string | number | undefined;
  /** The column that gives way when the terminal is narrow. */
  readonly shrink?: boolean;
  /** Left out when that is not enough, the lowest first. --json has it all. */
  readonly spare?: number;
  /** The head as it is written: it is a name to type. */
  readonly verbatim?: boolean;
  /** Numbers that come as texts. */
  readonly right?: boolean;
}

const GAP = '  ';
const LEAST = 8;

/** Tables are made to fit a terminal; a file gets them whole. */
export const widthFor = ({ isTty, columns }: Terminal): number | undefined => (isTty ? columns : undefined);

/**
 * `width`: of the terminal. Missing values are "-". No trailing blanks; does not wrap as long as columns may shrink or
 * be left out.
 */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width = Number.MAX_SAFE_INTEGER,
): string {
  const cells = rows.map((row) => columns.map((column) => column.value(row)));
  const texts = [
    columns.map(({ head, verbatim }) => (verbatim === true ? head : head.toUpperCase())),
    ...cells.map((line) => line.map((value) => cellText(value).replaceAll('\n', ' '))),
  ];
  const wanted = columns.map((_, index) =>
    // A call has room for about 125,000 arguments, so no Math.max(...texts).
    texts.reduce((widest, line) => Math.max(widest, displayWidth(line[index] ?? '')), 0),
  );
  const left = leastWanted(width, columns, wanted);
  if (left !== undefined)
    return renderTable(
      rows,
      columns.filter((column) => column !== left),
      width,
    );
  const widths = shrinkTo(width, columns, wanted);
  const right = columns.map(
    (column, index) => column.right === true || cells.some((line) => typeof line[index] === 'number'),
  );
  return texts
    .map((line) =>
      line
        .map((text, index) => pad(text, widths[index] ?? 0, right[index] ?? false))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/**
 * Two columns, names on the left: for one thing's details. A value may have several lines; `terminal`: longer ones are
 * wrapped. `indent`: of the whole.
 */
export function renderFields(
  fields: readonly (readonly [name: string, value: string | number | undefined])[],
  terminal?: Terminal,
  indent = '',
): string {
  const width = Math.max(0, ...fields.map(([name]) => displayWidth(name)));
  const hanging = `\n${indent}${' '.repeat(width)}${GAP}`;
  const room = terminal?.isTty === true ? terminal.columns - (hanging.length - 1) : undefined;
  return fields
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      const text = wrapped(cellText(value), room, terminal);
      return `${indent}${pad(name, width, false)}${GAP}${text.replaceAll('\n', hanging)}`.trimEnd();
    })
    .join('\n');
}

/** Coloured texts are short. */
function wrapped(text: string, room: number | undefined, terminal: Terminal | undefined): string {
  if (room === undefined || terminal === undefined || text.includes('\u001b')) return text;
  return wrapOwnText(text, room, terminal.typed);
}

function cellText(value: string | number | undefined): string {
  // Cleaned before its width is taken: a control character that is made visible has a width.
  return value === undefined || value === '' ? '-' : printableStyled(String(value));
}

function pad(text: string, width: number, right: boolean): string {
  const cut = fit(text, width);
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(cut)));
  return right ? blanks + cut : cut + blanks;
}

/** The column to leave out, when the table is too wide even with what may shrink at its least. */
function leastWanted<Row>(
  width: number,
  columns: readonly Column<Row>[],
  wanted: readonly number[],
): Column<Row> | undefined {
  const least = wanted.map((one, index) => (columns[index]?.shrink === true ? Math.min(one, LEAST) : one));
  if (totalOf(least) <= width) return undefined;
  return columns.reduce<Column<Row> | undefined>(
    (found, column) => ((column.spare ?? Infinity) < (found?.spare ?? Infinity) ? column : found),
    undefined,
  );
}

const totalOf = (widths: readonly number[]): number =>
  widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1);

function shrinkTo<Row>(width: number, columns: readonly Column<Row>[], wanted: readonly number[]): readonly number[] {
  const total = totalOf(wanted);
  const index = columns.findIndex((column) => column.shrink === true);
  if (total <= width || index < 0) return wanted;
  return wanted.map((one, at) => (at === index ? Math.max(Math.min(one, LEAST), one - (total - width)) : one));
}
