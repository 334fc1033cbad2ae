/** One pass over a store. A Schedule of every stack starts it; parallel passes are safe. */
import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { JanitorCarry } from '../core/wire/workflow.ts';

/** Reading whole checkpoints is slow. The next pass does what this one could not finish. */
const { sweep } = proxyActivities<Activities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '3 s',
  retry: { maximumAttempts: 3 },
});

export async function janitor(carry: JanitorCarry): Promise<void> {
  await sweep(carry);
}
