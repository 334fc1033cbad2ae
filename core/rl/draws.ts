/**
 * The endless, seeded stream of prompts. Draw number d reads dataset row `drawRow(stream, d)`: inside each pass over the
 * data every row comes up exactly once, in an order that the seed and the pass select. O(1) per draw, so a run goes on
 * from any cursor without replaying the ones before; batches cross the border between passes.
 */
import { InvalidInputError } from '../errors.ts';
import { permute, PERMUTATION_ALGORITHM } from './permutation.ts';

/** Recorded in the recipe revision: the same name always gives the same rows. */
export const DRAW_ALGORITHM = PERMUTATION_ALGORITHM;

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
  if (!(Number.isSafeInteger(draw) && draw >= 0)) throw new InvalidInputError(`a draw is a whole number from 0, got ${draw}`);
  const epoch = Math.floor(draw / stream.rows);
  const position = draw % stream.rows;
  return { draw, epoch, row: stream.shuffle ? permute(position, stream.rows, [stream.seed, epoch]) : position };
}

/** `count` draws from a cursor on. */
export function drawsFrom(stream: DrawStream, cursor: number, count: number): Draw[] {
  return Array.from({ length: count }, (_, i) => drawAt(stream, cursor + i));
}
