/**
 * Distributes a batch over data-parallel ranks (verl: `_balance_batch`, `log_seqlen_unbalance`; key
 * `trainer.balance_batch`).
 */
import { at } from '../../../core/at.ts';
import { InvalidInputError } from '../../../core/errors.ts';
import type { Numbers } from '../../../core/rl/ragged.ts';
import { balancedPartitions } from '../../../core/rl/balance/karmarkar-karp.ts';
import { groupBalancedPartitions, runsOf, workload } from './partitions.ts';

export interface RankBalance {
  /** Rows in their new order; rank r takes the r-th equal slice. */
  readonly order: readonly number[];
  readonly metrics: Readonly<Record<string, number>>;
}

export interface RankBalanceOptions {
  /** Rows per mini-batch, when each mini-batch must keep its rows and is balanced by itself. */
  readonly miniBatchRows?: number | undefined;
  /** Prompt of each row, when rows of a prompt must stay together. */
  readonly groups_S?: ArrayLike<unknown> | undefined;
}

export function balanceRanks(lengths_S: Numbers, ranks: number, options: RankBalanceOptions = {}): RankBalance {
  const costs_S = Float64Array.from(lengths_S, workload);
  const partitions =
    options.groups_S === undefined
      ? rowPartitions(costs_S, ranks, options.miniBatchRows ?? lengths_S.length).map((part) =>
          smallAtBothEnds(part, costs_S),
        )
      : promptPartitions(lengths_S, options.groups_S, ranks);
  return { order: partitions.flat(), metrics: unbalanceMetrics(lengths_S, partitions) };
}

function rowPartitions(costs_S: Float64Array, ranks: number, miniBatchRows: number): number[][] {
  const partitions: number[][] = Array.from({ length: ranks }, () => []);
  for (let from = 0; from + miniBatchRows <= costs_S.length; from += miniBatchRows) {
    const parts = balancedPartitions(costs_S.subarray(from, from + miniBatchRows), ranks, true);
    parts.forEach((part, rank) => at(partitions, rank).push(...part.map((row) => from + row)));
  }
  return partitions;
}

function promptPartitions(lengths_S: Numbers, groups_S: ArrayLike<unknown>, ranks: number): number[][] {
  const groups = runsOf(groups_S).length;
  if (groups % ranks !== 0) throw new InvalidInputError(`${groups} prompts do not divide by ${ranks} ranks`);
  return groupBalancedPartitions(lengths_S, groups_S, ranks);
}

/** Orders the rows inside a rank: long ones go to the middle. */
function smallAtBothEnds(part: readonly number[], costs_S: Numbers): number[] {
  const rising = part.toSorted((a, b) => at(costs_S, a) - at(costs_S, b) || a - b);
  const ofParity = (parity: number) => rising.filter((_, i) => i % 2 === parity);
  return [...ofParity(0), ...ofParity(1).reverse()];
}

/**
 * Tokens per rank before (contiguous slices of ⌊n / ranks⌋ rows; a remainder makes one more slice) and after balancing.
 * @returns verl's `global_seqlen/*`.
 */
export function unbalanceMetrics(
  lengths_S: Numbers,
  partitions: readonly (readonly number[])[],
  prefix = 'global_seqlen',
): Record<string, number> {
  const lengths = Array.from(lengths_S);
  const width = Math.floor(lengths.length / partitions.length);
  const before: number[] = [];
  for (let from = 0; from < lengths.length; from += width) before.push(total(lengths.slice(from, from + width)));
  const after = partitions.map((part) => total(part.map((row) => at(lengths, row))));
  return {
    [`${prefix}/min`]: Math.min(...before),
    [`${prefix}/max`]: Math.max(...before),
    [`${prefix}/minmax_diff`]: Math.max(...before) - Math.min(...before),
    [`${prefix}/balanced_min`]: Math.min(...after),
    [`${prefix}/balanced_max`]: Math.max(...after),
    [`${prefix}/mean`]: total(lengths) / partitions.length,
  };
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
