/** The score is the reward (verl: `reward_manager/naive.py`). */
import { columnsOf, rewardsOf, type ManagedRewards, type ScorerResult } from './types.ts';

/** @throws InvalidInputError for a score that is no finite number. */
export function naiveRewards(results: readonly ScorerResult[]): ManagedRewards {
  return { rewards_S: rewardsOf(results), columns: columnsOf(results) };
}
