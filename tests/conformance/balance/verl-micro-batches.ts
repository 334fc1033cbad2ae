/**
 * Micro-batches as verl plans them (`rearrange_micro_batches`, key `use_dynamic_bsz`): as many as the tokens need,
 * balanced by workload. One may exceed the token budget: `packMicroBatches` is what petrel trains with.
 */
import { at } from '../../../core/at.ts';
import { InvalidInputError } from '../../../core/errors.ts';
import type { Numbers } from '../../../core/rl/ragged.ts';
import { balancedPartitions } from '../../../core/rl/balance/karmarkar-karp.ts';
import { divideUp, roundUpTo, workload } from './partitions.ts';

export interface VerlMicroBatchOptions {
  readonly maxTokenLen: number;
  /** Width of the padded batch, which is what verl checks against the budget. */
  readonly paddedWidth: number;
  readonly minMicroBatches?: number | undefined;
  /** The number of micro-batches is rounded up to a multiple of this (pipeline stages). */
  readonly dividedBy?: number | undefined;
  /** Rows in consecutive groups of this size stay together. */
  readonly groupSize?: number | undefined;
  /** true: small micro-batches at both ends, which shortens pipeline bubbles. */
  readonly balanceOrder?: boolean | undefined;
}

export function verlMicroBatches(lengths_S: Numbers, options: VerlMicroBatchOptions): number[][] {
  const { maxTokenLen, paddedWidth, groupSize = 1 } = options;
  if (paddedWidth > maxTokenLen)
    throw new InvalidInputError(`rows of ${paddedWidth} tokens exceed the budget of ${maxTokenLen}`);
  if (lengths_S.length % groupSize !== 0)
    throw new InvalidInputError(`${lengths_S.length} rows are no multiple of ${groupSize}`);
  const groups = lengths_S.length / groupSize;
  const costs = new Float64Array(groups);
  for (let s = 0; s < lengths_S.length; s++)
    costs[Math.floor(s / groupSize)] = at(costs, Math.floor(s / groupSize)) + workload(at(lengths_S, s));
  const parts = balancedPartitions(costs, microBatchCount(lengths_S, groups, options), false);
  const ordered = options.balanceOrder === false ? parts : smallAtBothEnds(parts, costs);
  return ordered.map((part) =>
    part.flatMap((group) => Array.from({ length: groupSize }, (_, i) => group * groupSize + i)),
  );
}

function microBatchCount(lengths_S: Numbers, groups: number, options: VerlMicroBatchOptions): number {
  const tokens = Array.from(lengths_S).reduce((sum, length) => sum + length, 0);
  const needed = Math.max(Math.min(groups, divideUp(tokens, options.maxTokenLen)), options.minMicroBatches ?? 0);
  const count = roundUpTo(needed, options.dividedBy ?? 1);
  if (count > groups) throw new InvalidInputError(`${count} micro-batches of ${groups} rows or groups`);
  return count;
}

function smallAtBothEnds(parts: readonly number[][], costs: Numbers): number[][] {
  const cost = (part: readonly number[]) => part.reduce((sum, i) => sum + at(costs, i), 0);
  const falling = parts.toSorted((a, b) => cost(b) - cost(a) || at(b, 0) - at(a, 0));
  const ofParity = (parity: number) => falling.filter((_, i) => i % 2 === parity);
  return [...ofParity(0).reverse(), ...ofParity(1)];
}
