/** Statistics of the samples of one prompt, and how to spread a number per sample over its tokens. */
import { at } from '../../at.ts';
import type { Numbers } from '../ragged.ts';

/** Rows of each group, groups in order of first appearance. Only equality of the keys matters. */
export function rowsByGroup(groups_S: ArrayLike<unknown>): Map<unknown, number[]> {
  const groups = new Map<unknown, number[]>();
  for (let s = 0; s < groups_S.length; s++) {
    const members = groups.get(groups_S[s]);
    if (members === undefined) groups.set(groups_S[s], [s]);
    else members.push(s);
  }
  return groups;
}

export interface GroupStats {
  readonly mean: number;
  /** Unbiased. */
  readonly std: number;
}

/** For a group of one: mean 0 and std 1, so it keeps its score. The spread is exactly 0 when all scores are equal. */
export function groupStats(scores_S: Numbers, members: readonly number[]): GroupStats {
  if (members.length === 1) return { mean: 0, std: 1 };
  const first = at(scores_S, at(members, 0));
  // The mean of five times 0.23 differs from 0.23 by a rounding error; divided by a std near 0 that would become an
  // advantage.
  if (members.every((s) => scores_S[s] === first)) return { mean: first, std: 0 };
  let sum = 0;
  for (const s of members) sum += at(scores_S, s);
  const mean = sum / members.length;
  let squares = 0;
  for (const s of members) squares += (at(scores_S, s) - mean) ** 2;
  return { mean, std: Math.sqrt(squares / (members.length - 1)) };
}
