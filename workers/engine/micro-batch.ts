/** Cuts the samples of one micro-batch out of a batch, packed one after the other. */
import { at } from '../../core/at.ts';
import type { PackedBatch } from '../../core/ports.ts';
import type { BatchTensors } from '../../models/batch-tensors.ts';

export interface MicroBatch {
  readonly packed: PackedBatch;
  /** For each scored position, its index t in the batch's [T] arrays. */
  readonly tokens_P: Int32Array;
  /** Rows of the scored tokens by sample, for losses that depend on whole sequences. */
  readonly rowOffsets_S1: Int32Array;
}

/** `samples`: sample indices in packed order. A scored token is predicted at the position before it. */
export function cutMicroBatch(batch: BatchTensors, samples: Int32Array): MicroBatch {
  const lengths = Array.from(samples, (b) => span(batch.offsets_S1, b));
  const scoredLengths = Array.from(samples, (b) => span(batch.scoredOffsets_S1, b));
  const cuSeqlens = prefixSums(lengths);
  const rowOffsets_S1 = prefixSums(scoredLengths);
  const tokens_N = new Int32Array(at(cuSeqlens, -1));
  const positions_P = new Int32Array(at(rowOffsets_S1, -1));
  const targets_P = new Int32Array(positions_P.length);
  const tokens_P = new Int32Array(positions_P.length);
  samples.forEach((b, i) => {
    const start = at(batch.offsets_S1, b);
    const packedStart = at(cuSeqlens, i);
    tokens_N.set(batch.tokens_N.subarray(start, at(batch.offsets_S1, b + 1)), packedStart);
    let p = at(rowOffsets_S1, i);
    for (let t = at(batch.scoredOffsets_S1, b); t < at(batch.scoredOffsets_S1, b + 1); t++, p++) {
      const scored = at(batch.scored_T, t);
      positions_P[p] = packedStart + (scored - start) - 1;
      targets_P[p] = at(batch.tokens_N, scored);
      tokens_P[p] = t;
    }
  });
  return { packed: { tokens_N, cuSeqlens, positions_P, targets_P }, tokens_P, rowOffsets_S1 };
}

/** The values of a [T] array at the micro-batch's tokens. */
export function gather(values_T: Float32Array | Uint8Array, tokens_P: Int32Array): Float32Array {
  return Float32Array.from(tokens_P, (t) => at(values_T, t));
}

function prefixSums(lengths: readonly number[]): Int32Array {
  const sums = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => (sums[i + 1] = at(sums, i) + length));
  return sums;
}

function span(offsets: Int32Array, index: number): number {
  return at(offsets, index + 1) - at(offsets, index);
}
