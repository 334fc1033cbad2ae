/**
 * The endless, seeded stream of prompts. Draw number d reads dataset row `drawRow(stream, d)`. Inside each pass over
 * the data every row occurs exactly once, in an order that depends on the seed and the pass. It is O(1) per draw, so a
 * run continues from any cursor without replaying earlier draws. Batches may span two passes.
 */
import { InvalidInputError } from '../errors.ts';
import { permute } from './permutation.ts';

export interface DrawStream {
  /** Rows of the dataset. */
  readonly rows: number;
  /** Key `data.seed`. */
  readonly seed: number;
  /** Key `data.shuffle`; false reads the rows in order, pass after pass. */
  readonly shuffle: boolean;
}

export interface Draw {
  /** Position in the stream, from 0. */
  readonly draw: number;
  readonly row: number;
  /** Pass over the data, from 0. */
  readonly epoch: number;
}

export function drawAt(stream: DrawStream, draw: number): Draw {
  if (!(Number.isSafeInteger(draw) && draw >= 0))
    throw new InvalidInputError(`a draw is a whole number from 0, got ${draw}`);
  const epoch = Math.floor(draw / stream.rows);
  const position = draw % stream.rows;
  return { draw, epoch, row: stream.shuffle ? permute(position, stream.rows, [stream.seed, epoch]) : position };
}

/** Draw numbers from the first (included) to the second (not included). */
export type DrawRange = readonly [number, number];

/** `count` draws from a cursor on, without those in `skipped` and those that `leavesOut` names. */
export function drawsPast(
  stream: DrawStream,
  cursor: number,
  count: number,
  skipped: readonly DrawRange[],
  leavesOut: (draw: Draw) => boolean = () => false,
): Draw[] {
  const draws: Draw[] = [];
  for (let number = cursor; draws.length < count; number++) {
    const range = skipped.find(([start, end]) => start <= number && number < end);
    if (range !== undefined) {
      number = range[1] - 1;
      continue;
    }
    const draw = drawAt(stream, number);
    if (!leavesOut(draw)) draws.push(draw);
  }
  return draws;
}

/** The numbers from `cursor` up to `until` (not included) that are none of these ascending draws. */
export function gapsBetween(cursor: number, until: number, draws: readonly Pick<Draw, 'draw'>[]): [number, number][] {
  const gaps: [number, number][] = [];
  let next = cursor;
  for (const { draw } of [...draws, { draw: until }]) {
    if (draw > next) gaps.push([next, draw]);
    next = draw + 1;
  }
  return gaps;
}

/** The cursor after these draws: one more than the last. */
export function cursorAfter(cursor: number, draws: readonly Pick<Draw, 'draw'>[]): number {
  return Math.max(cursor, ...draws.map(({ draw }) => draw + 1));
}

/** The union of ranges, ascending, without numbers below `from`. */
export function mergeRanges(ranges: readonly DrawRange[], from = 0): [number, number][] {
  const merged: [number, number][] = [];
  const ascending = ranges
    .map(([start, end]): [number, number] => [Math.max(start, from), end])
    .filter(([start, end]) => start < end);
  for (const [start, end] of ascending.sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end);
    else merged.push([start, end]);
  }
  return merged;
}
