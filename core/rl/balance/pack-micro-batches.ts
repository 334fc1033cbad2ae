/**
 * Micro-batches within a token limit: the fewest that Karmarkar–Karp can balance under it (beyond 32, within a few per
 * cent, found in larger steps). Deterministic. Rows ascend inside a micro-batch, and micro-batches ascend by their
 * first row, so that the order of gradient sums depends only on the lengths.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import type { Numbers } from '../ragged.ts';
import { balancedPartitions } from './karmarkar-karp.ts';

/** @throws InvalidInputError with the row that is over the limit by itself. */
export function packMicroBatches(lengths_S: Numbers, tokenLimit: number): number[][] {
  if (lengths_S.length === 0) return [];
  const lengths = Array.from(lengths_S);
  const tooLong = lengths.findIndex((length) => length > tokenLimit);
  if (tooLong >= 0) {
    throw new InvalidInputError(
      `sequence ${tooLong} has ${lengths[tooLong]} tokens, more than the limit of a micro-batch (${tokenLimit})`,
      {
        hint: 'raise actor.ppo_max_token_len_per_gpu, or shorten prompts and responses',
      },
    );
  }
  const tokensOf = (part: readonly number[]) => part.reduce((sum, s) => sum + at(lengths, s), 0);
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  for (
    let count = Math.max(1, Math.ceil(tokens / tokenLimit));
    count < lengths.length;
    count += Math.max(1, count >> 5)
  ) {
    const parts = balancedPartitions(lengths, count, false);
    if (parts.every((part) => tokensOf(part) <= tokenLimit)) return parts.sort((a, b) => at(a, 0) - at(b, 0));
  }
  return lengths.map((_, s) => [s]);
}
