/**
 * PRIME's choice among the groups of an oversampled batch (verl-recipe: `filter_and_downsample`; keys
 * `data.filter_accuracy`, `data.accuracy_{lower,upper}_bound`, `data.filter_truncate`, `data.oversample_factor`; Cui et
 * al. 2025, arXiv 2502.01456). A group passes if
 *
 *   - its mean accuracy lies within the bounds, both included, and
 *   - its longest response has fewer than `maxResponseLength` − 1 tokens.
 *
 * Groups that pass come first, then the others, each in their order, and the first ones are kept. verl cuts at a row,
 * so its last group may lose members; here groups are whole.
 */
import { at } from '../at.ts';
import type { Numbers } from './ragged.ts';

export interface PrimeFilter {
  /** Bounds of the mean accuracy; absent: any. 0.2 and 0.8 in PRIME. */
  readonly accuracy?: { readonly lowest: number; readonly highest: number } | undefined;
  /** Refuse truncated responses: the longest response that may be sampled, in tokens. Absent: any. */
  readonly maxResponseLength?: number | undefined;
}

/** Why a group does not pass; undefined when it does. The lists are those of its members. */
export function reasonNotToPass(
  accuracies: Numbers,
  responseLengths: Numbers,
  { accuracy, maxResponseLength = Infinity }: PrimeFilter,
): string | undefined {
  let [sum, longest] = [0, 0];
  for (let i = 0; i < accuracies.length; i++) sum += at(accuracies, i);
  for (let i = 0; i < responseLengths.length; i++) longest = Math.max(longest, at(responseLengths, i));
  const mean = sum / accuracies.length;
  if (accuracy !== undefined && !(mean >= accuracy.lowest && mean <= accuracy.highest))
    return `its mean accuracy ${mean} is not between ${accuracy.lowest} and ${accuracy.highest}`;
  if (longest >= maxResponseLength - 1)
    return `a response has ${longest} tokens, and ${maxResponseLength - 1} count as truncated`;
  return undefined;
}

/** The groups in the order in which they are kept. */
export function passingFirst(passes_G: readonly boolean[]): number[] {
  const all = [...passes_G.keys()];
  return [...all.filter((g) => passes_G[g] === true), ...all.filter((g) => passes_G[g] !== true)];
}
