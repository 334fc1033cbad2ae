/** Ways of verl to distribute work that petrel does not use, with their arithmetic (verl: `seqlen_balancing`). */
import { at } from '../../../core/at.ts';
import { InvalidInputError } from '../../../core/errors.ts';
import type { Numbers } from '../../../core/rl/ragged.ts';
import { balancedPartitions } from '../../../core/rl/balance/karmarkar-karp.ts';

/** Cost of a sequence of this length, linear layers and attention, up to a factor: 24576·L + L². */
export function workload(length: number): number {
  return 24576 * length + length * length;
}

/** Each item in turn goes to the part with the smallest sum so far. `equalSize` balances counts before sums. */
export function greedyPartitions(sizes: Numbers, parts: number, equalSize: boolean): number[][] {
  const bias = equalSize ? Array.from(sizes).reduce((sum, size) => sum + size, 0) + 1 : 0;
  const partitions: number[][] = Array.from({ length: parts }, () => []);
  const sums = new Float64Array(parts);
  for (let i = 0; i < sizes.length; i++) {
    const smallest = sums.indexOf(Math.min(...sums));
    at(partitions, smallest).push(i);
    sums[smallest] = at(sums, smallest) + (at(sizes, i) + bias);
  }
  if (equalSize && partitions.some((partition) => partition.length * parts !== sizes.length)) {
    throw new InvalidInputError(`${sizes.length} items do not divide into ${parts} equal parts`);
  }
  return partitions;
}

/**
 * Keeps runs of equal keys together (samples with a common prefix): whole runs are balanced, the same number per part.
 * When a key occurs in two separate runs, these are two groups.
 */
export function groupBalancedPartitions(lengths_S: Numbers, keys_S: ArrayLike<unknown>, parts: number): number[][] {
  const groups = runsOf(keys_S);
  const costs = groups.map((group) => group.reduce((sum, s) => sum + workload(at(lengths_S, s)), 0));
  return balancedPartitions(costs, parts, true).map((partition) => partition.flatMap((group) => at(groups, group)));
}

/** The position of each element after a permutation: result[order[i]] = i. */
export function inverseOrder(order: Numbers): number[] {
  const inverse = new Array<number>(order.length);
  for (let i = 0; i < order.length; i++) inverse[at(order, i)] = i;
  return inverse;
}

export function divideUp(a: number, b: number): number {
  return Math.ceil(a / b);
}

export function roundUpTo(a: number, multiple: number): number {
  return divideUp(a, multiple) * multiple;
}

export function runsOf(keys_S: ArrayLike<unknown>): number[][] {
  const runs: number[][] = [];
  for (let s = 0; s < keys_S.length; s++) {
    if (s > 0 && keys_S[s] === keys_S[s - 1]) at(runs, -1).push(s);
    else runs.push([s]);
  }
  return runs;
}
