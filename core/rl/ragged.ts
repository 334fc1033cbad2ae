/**
 * Ragged rows: per-token values of several samples, one after the other, without padding.
 *
 * Legend of shapes, everywhere in petrel's TypeScript. `rewards_S` has one element per sample.
 *
 *   S  samples (sequences)                      G  prompt groups; in a rollout one per draw
 *   T  response tokens of all samples           N  packed tokens, prompts and responses together
 *   P  scored positions of one forward pass     V  tokens of the vocabulary
 *   M  micro-batches                            U  optimiser steps (updates)
 *
 * A 1 behind a letter means offsets: `offsets_S1` has S + 1 elements, and row s is [offsets_S1[s], offsets_S1[s + 1]).
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { scratchFloat64 } from './scratch.ts';

export type Numbers = ArrayLike<number>;

export interface RaggedRows {
  /** Row s is [offsets_S1[s], offsets_S1[s + 1]) of every array over T. */
  readonly offsets_S1: Numbers;
  /** 1 on tokens the policy produced, 0 on observation tokens and padding (verl: `response_mask`). */
  readonly mask_T: Numbers;
  /** Tokens with mask 1 in each row, where they were counted already. */
  readonly counts_S?: Float64Array;
}

/** Rows of these lengths; every token counts unless a mask is given. */
export function raggedRows(lengths_S: Numbers, mask_T?: Numbers): RaggedRows {
  const offsets_S1 = new Int32Array(lengths_S.length + 1);
  for (let s = 0; s < lengths_S.length; s++) offsets_S1[s + 1] = at(offsets_S1, s) + at(lengths_S, s);
  const tokens = at(offsets_S1, lengths_S.length);
  if (mask_T !== undefined) requireTokens('mask', mask_T, tokens);
  return { offsets_S1, mask_T: mask_T ?? new Uint8Array(tokens).fill(1) };
}

export function rowCount(rows: RaggedRows): number {
  return rows.offsets_S1.length - 1;
}

export function tokenCount(rows: RaggedRows): number {
  return at(rows.offsets_S1, rowCount(rows));
}

/** Width of the longest row, masked tokens included. */
export function longestRow(rows: RaggedRows): number {
  let longest = 0;
  for (let s = 0; s < rowCount(rows); s++)
    longest = Math.max(longest, at(rows.offsets_S1, s + 1) - at(rows.offsets_S1, s));
  return longest;
}

/** Tokens with mask 1 in each row. */
export function maskCounts(rows: RaggedRows): Float64Array {
  if (rows.counts_S !== undefined) return rows.counts_S;
  const counts_S = new Float64Array(rowCount(rows));
  for (let s = 0; s < counts_S.length; s++) {
    const end = at(rows.offsets_S1, s + 1);
    let count = 0;
    for (let t = at(rows.offsets_S1, s); t < end; t++) count += maskAt(rows, t);
    counts_S[s] = count;
  }
  return counts_S;
}

/** The mask is read as it is: converted to float64, that of a large batch would be larger than its tokens. */
function maskAt({ mask_T }: RaggedRows, t: number): number {
  const mask = mask_T[t];
  if (mask === undefined) throw new RangeError(`no element ${t} in a mask of ${mask_T.length} tokens`);
  return mask;
}

/** Rows whose mask has been converted and counted, so that several losses need not do it again. */
export interface CountedRows extends RaggedRows {
  readonly mask_T: Float64Array;
  readonly counts_S: Float64Array;
}

/** Counts the valid tokens of rows; inside of `withScratch` the mask may be a scratch array. */
export function countedRows(rows: RaggedRows): CountedRows {
  const { offsets_S1 } = rows;
  const mask_T = scratchFloat64(rows.mask_T);
  return { offsets_S1, mask_T, counts_S: rows.counts_S ?? maskCounts({ offsets_S1, mask_T }) };
}

/** One value per row, on every token with mask 1 and 0 elsewhere. */
export function broadcastRows(values_S: Numbers, rows: RaggedRows): Float64Array {
  const values_T = new Float64Array(tokenCount(rows));
  for (let s = 0; s < rowCount(rows); s++) {
    const [value, end] = [at(values_S, s), at(rows.offsets_S1, s + 1)];
    for (let t = at(rows.offsets_S1, s); t < end; t++) {
      const weight = maskAt(rows, t);
      if (weight !== 0) values_T[t] = value * weight;
    }
  }
  return values_T;
}

/** Sets the values at mask 0 to 0, in place. */
export function clearMasked(values_T: Float64Array, rows: RaggedRows): Float64Array {
  for (let t = 0; t < values_T.length; t++) if (maskAt(rows, t) === 0) values_T[t] = 0;
  return values_T;
}

/**
 * Refuses an array of another length than the number of tokens, because shifted values would train on the wrong tokens
 * silently.
 */
export function requireTokens(name: string, values: Numbers, tokens: number): void {
  if (values.length !== tokens) throw new InvalidInputError(`${name} has ${values.length} values for ${tokens} tokens`);
}
