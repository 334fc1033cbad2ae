/** Reads an iteration for display. A damaged one is skipped here; `ledger verify` reports the damage. */
import { isDamage } from '../../core/records/damage.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';

/** Undefined when a record of it is missing or damaged. */
export async function readableIteration(log: RunLog, k: number, { termRecord }: Head) {
  try {
    return await log.iteration(k, termRecord);
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}
