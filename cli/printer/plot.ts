/** Curves of characters: a plot of some lines, and one that fits into a line of text. Pure. */
import { showNumber } from '../../core/quantities.ts';
import { displayWidth } from './width.ts';

export interface Point {
  readonly x: number;
  /** One that is not finite leaves a gap. */
  readonly y: number;
}

export interface PlotSize {
  /** Columns of the terminal. */
  readonly columns: number;
  /** Rows of the curve, without title and axis. */
  readonly rows?: number;
}

/** A character cell has eight steps: blank, then an eighth more with each. */
const eighths = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const steps = eighths.length - 1;
/** A point is at most so wide: five points over a whole terminal would look like more than they are. */
const widestPoint = 4;

/** A title, the curve with its range, and the x of its first and last point. Points are ascending by x. */
export function plot(title: string, points: readonly Point[], { columns, rows = 8 }: PlotSize): string {
  const range = rangeOf(points.map(({ y }) => y));
  if (range === undefined) return `${title}\n  no numbers`;
  const [top, bottom] = [showNumber(range.most), showNumber(range.least)];
  const labelWidth = Math.max(displayWidth(top), displayWidth(bottom));
  const heights = spread(points, Math.max(1, columns - labelWidth - 2)).map((y) => heightOf(y, range, rows * steps));
  const lines = Array.from({ length: rows }, (_, row) => {
    const label = row === 0 ? top : row === rows - 1 ? bottom : '';
    const tick = label === '' ? '│' : '┤';
    return `${label.padStart(labelWidth)} ${tick}${heights.map((height) => cell(height, rows - 1 - row)).join('')}`;
  });
  const axis = `${' '.repeat(labelWidth)} └${'─'.repeat(heights.length)}`;
  return [title, ...lines.map((line) => line.trimEnd()), axis, xLabels(points, labelWidth + 2, heights.length)].join(
    '\n',
  );
}

/** The newest values as one word, `▁▃▆█`: the lowest of them is the lowest step. */
export function sparkline(values: readonly number[], width: number): string {
  const shown = values.slice(-width);
  const range = rangeOf(shown);
  if (range === undefined) return '';
  return shown.map((value) => eighths[heightOf(value, range, steps)] ?? ' ').join('');
}

interface Range {
  readonly least: number;
  readonly most: number;
}

function rangeOf(values: readonly number[]): Range | undefined {
  const finite = values.filter((value) => Number.isFinite(value));
  if (finite.length === 0) return undefined;
  return finite.reduce((range, value) => ({ least: Math.min(range.least, value), most: Math.max(range.most, value) }), {
    least: Number.POSITIVE_INFINITY,
    most: Number.NEGATIVE_INFINITY,
  });
}

/** A value for each column: points are repeated when there is room, averaged when there is not. */
function spread(points: readonly Point[], columns: number): number[] {
  const wide = Math.min(widestPoint, Math.floor(columns / points.length));
  if (wide >= 1) return points.flatMap(({ y }) => Array<number>(wide).fill(y));
  return Array.from({ length: columns }, (_, column) => {
    const start = Math.floor((column * points.length) / columns);
    const end = Math.floor(((column + 1) * points.length) / columns);
    const finite = points
      .slice(start, end)
      .map(({ y }) => y)
      .filter((y) => Number.isFinite(y));
    return finite.reduce((sum, y) => sum + y, 0) / finite.length;
  });
}

/** Height from 1 to `most`; a flat curve lies in the middle, and a value that is not finite at 0. */
function heightOf(value: number, { least, most }: Range, highest: number): number {
  if (!Number.isFinite(value)) return 0;
  if (most === least) return Math.ceil(highest / 2);
  return 1 + Math.round(((value - least) / (most - least)) * (highest - 1));
}

/** What stands in one row of a column, counted from below. */
const cell = (height: number, row: number): string =>
  eighths[Math.min(steps, Math.max(0, height - row * steps))] ?? ' ';

function xLabels(points: readonly Point[], indent: number, width: number): string {
  const [first, last] = [String(points[0]?.x ?? ''), String(points.at(-1)?.x ?? '')];
  if (points.length === 1) return ' '.repeat(indent) + first;
  return ' '.repeat(indent) + first + last.padStart(Math.max(last.length + 1, width - first.length));
}
