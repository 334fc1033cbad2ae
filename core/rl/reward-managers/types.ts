/** What scorers give and what reward managers make of it. S: samples. */
import { InvalidInputError } from '../../errors.ts';

export type ColumnValue = number | string | boolean | null;

/** A scorer's result for one sample: the score alone, or an object that also has columns. */
export type ScorerResult = number | { readonly score: number; readonly [column: string]: ColumnValue };

export interface ManagedRewards {
  /** Reward of each sample. */
  readonly rewards_S: Float64Array;
  /** One value per sample (verl: `reward_extra_info`); null where a scorer gave none. */
  readonly columns: Readonly<Record<string, readonly ColumnValue[]>>;
}

function scoreOf(result: ScorerResult): number {
  return typeof result === 'number' ? result : result.score;
}

/**
 * Columns of all samples, in the order in which they first appear. `alone`: the column that takes the score of a result
 * without columns; undefined: none.
 */
export function columnsOf(
  results: readonly ScorerResult[],
  alone?: string,
): Readonly<Record<string, readonly ColumnValue[]>> {
  const columns = new Map<string, ColumnValue[]>();
  for (const [s, result] of results.entries()) {
    const values = typeof result === 'number' ? (alone === undefined ? {} : { [alone]: result }) : result;
    for (const [name, value] of Object.entries(values)) {
      const column = columns.get(name) ?? Array.from<ColumnValue>({ length: results.length }).fill(null);
      column[s] = value;
      columns.set(name, column);
    }
  }
  return Object.fromEntries(columns);
}

/** @throws InvalidInputError for a score that is no finite number. */
export function rewardsOf(results: readonly ScorerResult[]): Float64Array {
  return Float64Array.from(results, (result, s) => {
    const score = scoreOf(result);
    if (!Number.isFinite(score))
      throw new InvalidInputError(`sample ${s}: expected a finite score, got ${String(score)}`);
    return score;
  });
}
