/** Waiting for the end of a run: the store says how it ended, the workflow says when to look. */
import { setTimeout as delay } from 'node:timers/promises';
import type { RunState, StatusEntry } from '../../core/records/schema.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import { endedStates } from './summary.ts';

const lookMs = 500;
/** A workflow that ended without a word, such as one that was terminated, is given this many looks. */
const lastLooks = 4;

/**
 * Resolves with the state in which the run ended or paused; undefined when its workflow ended and left none. `after`: entries up to this one are old news.
 * `workflowEnded`: settles when it is worth looking at once.
 */
export async function waitForEnd(
  log: RunLog,
  after: StatusEntry,
  workflowEnded: Promise<void>,
): Promise<RunState | undefined> {
  let woken = false;
  let looks = 0;
  const wake = workflowEnded.then(() => (woken = true));
  for (;;) {
    const status = await log.status();
    if (status !== undefined && status.n > after.n && (endedStates.has(status.state) || status.state === 'paused'))
      return status.state;
    if (woken && ++looks === lastLooks) return undefined;
    const nextLook = delay(lookMs);
    await (woken ? nextLook : Promise.race([wake, nextLook]));
  }
}
