/** An iteration for people who look at a run: a damaged one is passed over, and `ledger verify` says what it lacks. */
import { isDamage } from '../../core/damage.ts';
import type { Head, RunLog } from '../../infra/store/run-log.ts';

/** undefined when a record of it is lost or damaged. */
export async function readableIteration(log: RunLog, k: number, { termRecord }: Head) {
  try {
    return await log.iteration(k, termRecord);
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}
