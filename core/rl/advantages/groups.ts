/** Statistics of the samples of one prompt. */
import { at } from '../../at.ts';
import { square } from '../../math/square.ts';
import type { Numbers } from '../ragged.ts';

/** Rows of each group, groups in order of first appearance. Only equality of the keys matters. */
export function rowsByGroup(groups_S: ArrayLike<unknown>): Map<unknown, number[]> {
  const groups = new Map<unknown, number[]>();
  for (let s = 0; s < groups_S.length; s++) addRow(groups, groups_S[s], s);
  return groups;
}

/** The same within some rows: a group divided by a second key. */
export function divideRows(members: readonly number[], keys_S: ArrayLike<unknown>): Map<unknown, number[]> {
  const parts = new Map<unknown, number[]>();
  for (const s of members) addRow(parts, keys_S[s], s);
  return parts;
}

function addRow(groups: Map<unknown, number[]>, key: unknown, s: number): void {
  const members = groups.get(key);
  if (members === undefined) groups.set(key, [s]);
  else members.push(s);
}

export interface GroupStats {
  readonly mean: number;
  /** Unbiased. */
  readonly std: number;
}

/**
 * Statistics of a group; a group of one has mean 0 and std 1, so it keeps its score. The spread is exactly 0 when all
 * scores are equal.
 */
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
  for (const s of members) squares += square(at(scores_S, s) - mean);
  return { mean, std: Math.sqrt(squares / (members.length - 1)) };
}

/** Each score minus the mean of its group; a group of one keeps its score. */
export function centredScores(scores_S: Numbers, groups_S: ArrayLike<unknown>): Float64Array {
  const centred_S = new Float64Array(scores_S.length);
  for (const members of rowsByGroup(groups_S).values()) {
    const { mean } = groupStats(scores_S, members);
    for (const s of members) centred_S[s] = at(scores_S, s) - mean;
  }
  return centred_S;
}
