/** The table of the exact comparison: for the terminal, and for the docs. */
import { otherSide } from './comparisons.ts';
import type { Compared } from './compare.ts';

export const exactHeads = ['batch', 'through', 'responses', 'tokens', 'ratios', 'loss', 'loss apart', 'gradient apart'];

export function exactCells(row: Compared): string[] {
  return [
    row.batch,
    otherSide[row.comparison],
    String(row.responses),
    String(row.tokens),
    row.ratios === undefined ? '' : row.ratios.map((ratio) => ratio.toPrecision(3)).join(' to '),
    row.loss.toPrecision(4),
    row.lossDifference.toExponential(1),
    row.gradientDifference.toExponential(1),
  ];
}

const widths = [26, 11, 9, 6, 18, 11, 10, 14];

export const exactLine = (cells: readonly string[]): string =>
  cells.map((cell, i) => (i < 2 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' ');
