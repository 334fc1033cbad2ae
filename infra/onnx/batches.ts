/** Batches of sequences of similar length, with a bound on their memory. */
import { at } from '../../core/at.ts';

export interface BatchLimits {
  /** Tokens of a batch, padding included. */
  readonly tokens: number;
  /** Pairs of tokens of a batch, padding included: attention has a number for each, in every head. */
  readonly pairs: number;
  /** Sequences of a batch. */
  readonly sequences: number;
  /** May sequences of a batch have different lengths? */
  readonly padding: boolean;
}

/**
 * Places of the sequences of each batch, the longest first; a sequence over the limits stands alone. It depends on
 * nothing but the lengths and the limits.
 */
export function batchesByLength(lengths: readonly number[], limits: BatchLimits): number[][] {
  const order = lengths.map((_, s) => s).sort((a, b) => at(lengths, b) - at(lengths, a) || a - b);
  const batches: number[][] = [];
  let longest = 0;
  for (const s of order) {
    const batch = batches.at(-1);
    const length = at(lengths, s);
    if (batch !== undefined && fits(batch.length + 1, longest, length, limits)) batch.push(s);
    else {
      batches.push([s]);
      longest = length;
    }
  }
  return batches;
}

function fits(sequences: number, longest: number, length: number, limits: BatchLimits): boolean {
  return (
    (limits.padding || length === longest) &&
    sequences <= limits.sequences &&
    sequences * longest <= limits.tokens &&
    sequences * longest * longest <= limits.pairs
  );
}
