/**
 * A curriculum: prompts that the policy has solved, or cannot solve yet, are passed over for some passes over the data
 * (recipe section `data.curriculum`; verl: the hook `data.sampler`, with which users write their own).
 *
 * The state is what the last group of each prompt scored. A prompt is passed over while its mean is at least `solved`
 * or at most `unsolved`, and fewer than `revisit` passes have begun since. So every prompt is sampled again at some
 * time, and a stream of draws always has a next one.
 */
import type { Draw } from './draws.ts';

export interface CurriculumSettings {
  /** The number that is averaged over a group: `score`, or a column of the scorer. */
  readonly metric: string;
  /** null: no prompt counts as solved. */
  readonly solved: number | null;
  /** null: no prompt counts as too hard. */
  readonly unsolved: number | null;
  /** Passes over the data, at least 1. */
  readonly revisit: number;
}

/** What a row scored when it was sampled last: the mean of its group, and the pass over the data. */
export interface RowResult {
  readonly mean: number;
  readonly epoch: number;
}

/** Results by number of the row. Rows that were not sampled yet are absent. */
export type CurriculumState = ReadonlyMap<number, RowResult>;

/** Is this draw left out? */
export function isPassedOver(
  { row, epoch }: Pick<Draw, 'row' | 'epoch'>,
  state: CurriculumState,
  { solved, unsolved, revisit }: CurriculumSettings,
): boolean {
  const last = state.get(row);
  if (last === undefined || epoch - last.epoch >= revisit) return false;
  return (solved !== null && last.mean >= solved) || (unsolved !== null && last.mean <= unsolved);
}

/** A group of samples of one row, by the draws of an iteration. */
export interface GroupResult {
  readonly row: number;
  readonly epoch: number;
  /** null: a sample without a score. */
  readonly values: readonly (number | null)[];
}

/** The state after these groups. A group without any score changes nothing. */
export function curriculumAfter(state: CurriculumState, groups: readonly GroupResult[]): CurriculumState {
  const after = new Map(state);
  for (const { row, epoch, values } of groups) {
    const valid = values.filter((value) => value !== null);
    if (valid.length === 0) continue;
    after.set(row, { mean: valid.reduce((sum, value) => sum + value, 0) / valid.length, epoch });
  }
  return after;
}
