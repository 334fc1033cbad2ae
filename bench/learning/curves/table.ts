/** The table of the curves: for the terminal, and for the docs. */
import { judge } from './judge.ts';
import type { CurveResult } from './judge.ts';
import { ENTRIES } from './settings.ts';

export const curveHeads = ['algorithm', 'seeds', 'petrel', 'TRL', 'difference', '95 % interval'];

export function curveCells(result: CurveResult): string[] {
  const { petrel, trl, difference } = judge(result);
  return [
    ENTRIES.find(({ name }) => name === result.name)?.title ?? result.name,
    `${result.petrel.length} + ${result.trl.length}`,
    petrel.toFixed(4),
    trl.toFixed(4),
    signed(difference.mean),
    `${signed(difference.low)} to ${signed(difference.high)}`,
  ];
}

const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(4)}`;

const widths = [18, 7, 8, 8, 10, 20];

export const curveLine = (cells: readonly string[]): string =>
  cells.map((cell, i) => (i < 1 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' ');
