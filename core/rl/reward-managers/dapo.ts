/**
 * The score plus the penalty for length (verl: `reward_manager/dapo.py`; Yu et al. 2025, arXiv 2503.14476):
 *
 *   reward = score + overlong penalty        overlong.ts
 *
 * A score without columns is its own column `acc`. Columns of the penalty: `overlong_reward`, and `overlong`, whether
 * it is below 0. The column `score` stays without the penalty.
 */
import { at } from '../../at.ts';
import { overlongPenalties, type OverlongBuffer } from '../overlong.ts';
import type { Numbers } from '../ragged.ts';
import { columnsOf, rewardsOf, type ManagedRewards, type ScorerResult } from './types.ts';

export interface DapoConfig {
  /** undefined: no penalty. */
  readonly overlong?: OverlongBuffer | undefined;
  /** Whether the penalty gets columns (verl: `overlong_buffer_cfg.log`); true. */
  readonly log?: boolean | undefined;
}

/** `lengths_S`: tokens of each response. @throws InvalidInputError for a bad score, or a buffer that does not fit. */
export function dapoRewards(
  results: readonly ScorerResult[],
  lengths_S: Numbers,
  { overlong, log = true }: DapoConfig,
): ManagedRewards {
  const scores_S = rewardsOf(results);
  const columns = columnsOf(results, 'acc');
  if (overlong === undefined) return { rewards_S: scores_S, columns };
  const penalties_S = overlongPenalties(lengths_S, overlong);
  const rewards_S = scores_S.map((score, s) => score + at(penalties_S, s));
  if (!log) return { rewards_S, columns };
  const penalties = [...penalties_S];
  return {
    rewards_S,
    columns: { ...columns, overlong_reward: penalties, overlong: penalties.map((value) => value < 0) },
  };
}
