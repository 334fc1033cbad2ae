/** A pack whose sequences continue none, for engines without prefix trees: each completion gets its prompt again. */
import { at } from '../../../core/at.ts';
import type { PackedBatch } from '../../../core/ports/policy.ts';

/** The outputs of its positions are those of the batch. */
export function flatBatch(batch: PackedBatch): PackedBatch {
  const { tokens_N, cuSeqlens, parents_S, positions_P } = batch;
  if (parents_S === undefined || parents_S.every((parent) => parent === -1)) return batch;
  const rangeOf = (s: number) => [at(cuSeqlens, s), at(cuSeqlens, s + 1)] as const;
  const pieces: Int32Array[] = [];
  const offsets = [0];
  /** The place of each token in the flat batch; what lies before a sequence's own tokens are copies. */
  const places_N = new Int32Array(tokens_N.length);
  parents_S.forEach((parent, s) => {
    const [start, end] = rangeOf(s);
    const prompt = parent === -1 ? new Int32Array() : tokens_N.subarray(...rangeOf(parent));
    const own = at(offsets, -1) + prompt.length;
    for (let i = start; i < end; i++) places_N[i] = own + i - start;
    pieces.push(prompt, tokens_N.subarray(start, end));
    offsets.push(own + end - start);
  });
  const { parents_S: _, ...rest } = batch;
  return {
    ...rest,
    tokens_N: Int32Array.from(pieces.flatMap((piece) => [...piece])),
    cuSeqlens: Int32Array.from(offsets),
    positions_P: positions_P.map((position) => at(places_N, position)),
  };
}
