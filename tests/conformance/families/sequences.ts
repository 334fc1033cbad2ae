import type { PackedBatch } from '../../../core/ports/policy.ts';

export type Ragged = readonly (readonly number[])[];

/** Sequences one after the other; every position is scored against the next token (the last one against token 0). */
export function packed(sequences: Ragged): PackedBatch {
  const tokens = sequences.flat();
  const cuSeqlens = Int32Array.from([0, ...sequences.map(sum())]);
  const targets = sequences.flatMap((sequence) => [...sequence.slice(1), 0]);
  return {
    tokens_N: Int32Array.from(tokens),
    cuSeqlens,
    positions_P: Int32Array.from(tokens, (_, i) => i),
    targets_P: Int32Array.from(targets),
  };
}

/** Splits the values of all positions into rows; `extra` −1 leaves out the last one of each row. */
export function unpacked(sequences: Ragged, values: Float32Array, extra: 0 | -1): number[][] {
  let at = 0;
  return sequences.map((sequence) => {
    const row = Array.from(values.subarray(at, at + sequence.length + extra));
    at += sequence.length;
    return row;
  });
}

/** Running total of lengths. */
function sum(): (sequence: readonly number[]) => number {
  let total = 0;
  return (sequence) => (total += sequence.length);
}
