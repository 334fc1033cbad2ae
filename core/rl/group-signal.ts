/** How much the scores of a batch tell an estimator that compares the responses to one prompt. */
import { at } from '../at.ts';
import { square } from '../math/square.ts';
import type { Numbers } from './ragged.ts';

/** Share of groups whose scores are all equal: their advantages are zero. NaN without groups. */
export function groupsWithoutSignal(scores_S: Numbers, groups_S: Numbers): number {
  const first = new Map<number, number>();
  const differing = new Set<number>();
  for (let s = 0; s < scores_S.length; s++) {
    const [group, score] = [at(groups_S, s), at(scores_S, s)];
    if (!first.has(group)) first.set(group, score);
    else if (first.get(group) !== score) differing.add(group);
  }
  return (first.size - differing.size) / first.size;
}

/** Standard deviation of the population; NaN for no values. */
export function standardDeviation(values: Numbers): number {
  const all = Array.from(values);
  const mean = all.reduce((sum, value) => sum + value, 0) / all.length;
  return Math.sqrt(all.reduce((sum, value) => sum + square(value - mean), 0) / all.length);
}
