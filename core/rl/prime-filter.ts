/**
 * PRIME's choice among the groups of an oversampled batch (verl-recipe: `filter_and_downsample`; keys
 * `data.filter_accuracy`, `data.accuracy_{lower,upper}_bound`, `data.filter_truncate`, `data.oversample_factor`; Cui et
 * al. 2025, arXiv 2502.01456). A group passes if
 *
 *   - its mean score lies within the bounds, both included, and
 *   - its longest response has fewer than `maxResponseLength` − 1 tokens.
 *
 * Groups that pass come first, then the others, each in their order; the first 1/oversampleFactor of the rows are kept.
 * verl cuts at a row, so the last group may lose members; a factor that divides the number of groups keeps them whole.
 */
import { at } from '../at.ts';
import { rowsByGroup } from './advantages/groups.ts';
import type { Numbers } from './ragged.ts';

export interface PrimeFilter {
  /** Bounds of the mean score; absent: any. 0.2 and 0.8 in PRIME. */
  readonly accuracy?: { readonly lowest: number; readonly highest: number } | undefined;
  /** Refuse truncated responses: the longest response that may be sampled, in tokens. Absent: any. */
  readonly maxResponseLength?: number | undefined;
  /** How many times more rows were sampled than are kept; 4 in PRIME. */
  readonly oversampleFactor: number;
}

export interface PrimeSelection {
  /** Does the group pass? Groups in order of first appearance. */
  readonly passes_G: readonly boolean[];
  /** Kept rows, group by group. */
  readonly keptRows: readonly number[];
}

export function primeSelection(
  scores_S: Numbers,
  responseLengths_S: Numbers,
  groups_S: ArrayLike<unknown>,
  filter: PrimeFilter,
): PrimeSelection {
  const groups = [...rowsByGroup(groups_S).values()];
  const passes_G = groups.map((members) => passes(members, scores_S, responseLengths_S, filter));
  const ordered = [
    ...groups.filter((_, g) => passes_G[g] === true),
    ...groups.filter((_, g) => passes_G[g] === false),
  ].flat();
  return { passes_G, keptRows: ordered.slice(0, Math.floor(ordered.length / filter.oversampleFactor)) };
}

function passes(
  members: readonly number[],
  scores_S: Numbers,
  responseLengths_S: Numbers,
  { accuracy, maxResponseLength = Infinity }: PrimeFilter,
): boolean {
  const mean = members.reduce((sum, s) => sum + at(scores_S, s), 0) / members.length;
  const longest = members.reduce((length, s) => Math.max(length, at(responseLengths_S, s)), 0);
  const isWithin = accuracy === undefined || (mean >= accuracy.lowest && mean <= accuracy.highest);
  return isWithin && longest < maxResponseLength - 1;
}
