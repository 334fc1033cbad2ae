/** Waits for the end of a run. The store tells how it ended; the end of the workflow tells when to look. */
import { setTimeout as delay } from 'node:timers/promises';
import type { StatusEntry } from '../../core/records/schema.ts';
import type { RunState } from '../../core/run-states.ts';
import { stackName } from '../../infra/stack/index.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import type { ApiContext } from '../context.ts';
import { driverAfterUp } from './driver.ts';
import type { FoundRun } from '../stores/find.ts';
import { endedStates } from '../../core/run-states.ts';

/**
 * Waits until a run ends or pauses. A stack that is down is brought up. `after`: the status entry when the waiting
 * began; older entries are ignored. `signal`: ends the waiting, with the answer `running`; the run continues.
 */
export async function waitUntilEnd(
  run: FoundRun,
  after: StatusEntry,
  context: ApiContext,
  signal?: AbortSignal,
): Promise<RunState> {
  const owner = (await run.log.newestTerm())?.record.owner ?? stackName(context.home);
  // A stack cannot query the workflow of another stack, so only the store tells.
  if (owner !== stackName(context.home))
    return (await waitForEnd(run.log, after, new Promise(() => {}), signal)) ?? 'running';
  const driver = await driverAfterUp(run, context);
  try {
    return (await waitForEnd(run.log, after, driver.ended(), signal)) ?? 'running';
  } finally {
    await driver.close();
  }
}

const lookMs = 500;
/** A workflow that ended without a last entry, for instance because it was terminated, is looked at this many times. */
const lastLooks = 4;

/**
 * Resolves with the state in which the run ended or paused. Undefined when its workflow ended and recorded none.
 * `after`: entries up to this one are ignored. `workflowEnded`: look at once when it resolves.
 */
export async function waitForEnd(
  log: RunLog,
  after: StatusEntry,
  workflowEnded: Promise<void>,
  signal?: AbortSignal,
): Promise<RunState | undefined> {
  let woken = false;
  let looks = 0;
  const wake = workflowEnded.then(() => (woken = true));
  for (;;) {
    const status = await log.status.newest();
    if (status !== undefined && status.n > after.n && (endedStates.has(status.state) || status.state === 'paused')) {
      await log.store.settle(); // a reported end must survive a power cut
      return status.state;
    }
    if (signal?.aborted === true || (woken && ++looks === lastLooks)) return undefined;
    const nextLook = delay(lookMs);
    await (woken ? nextLook : Promise.race([wake, nextLook]));
  }
}
