/**
 * Whole sequences for a score head, which reads each at its last token. As in transformers, that is the last token that
 * is not the model's pad token, so a model whose pad token is its end token reads the token before it.
 */
import { at } from '../../../core/at.ts';
import type { PackedBatch } from '../../../core/ports/policy.ts';

/** Sequences one after the other. `padToken`: undefined where the model names none. */
export function packWhole(sequences: readonly Int32Array[], padToken: number | undefined): PackedBatch {
  const cuSeqlens = new Int32Array(sequences.length + 1);
  sequences.forEach((tokens, s) => (cuSeqlens[s + 1] = at(cuSeqlens, s) + tokens.length));
  const tokens_N = new Int32Array(at(cuSeqlens, -1));
  sequences.forEach((tokens, s) => tokens_N.set(tokens, at(cuSeqlens, s)));
  return {
    tokens_N,
    cuSeqlens,
    positions_P: Int32Array.from(sequences, (tokens, s) => at(cuSeqlens, s) + lastToken(tokens, padToken)),
  };
}

/** A sequence of pad tokens alone is read at its first, as in transformers. */
function lastToken(tokens: Int32Array, padToken: number | undefined): number {
  let last = tokens.length - 1;
  while (last > 0 && tokens[last] === padToken) last--;
  return last;
}
