/**
 * Keeps the fleet of a stack: looks, plans, buys and gives back, and waits for a change. All that it knows is in the
 * store, so it may be lost at any point and started again.
 */
import { condition, continueAsNew, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import { fleetChangedSignal } from '../core/wire/workflow.ts';
import type { JanitorCarry } from '../core/wire/workflow.ts';

/** A cloud may answer slowly. What it did not answer is asked again with the same token. */
const { tendFleet } = proxyActivities<Activities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '3 s',
  retry: { initialInterval: '1 s', maximumInterval: '30 s' },
});

/** The waits until the next pass. */
const waits = { moving: '1 s', still: '5 s', nothing: '1 minute' } as const;
/** A history of this many passes is short enough to be replayed within a second. */
const passes = 500;

export async function keepFleet(carry: JanitorCarry): Promise<void> {
  let changed = false;
  setHandler(defineSignal(fleetChangedSignal), () => {
    changed = true;
  });
  for (let pass = 0; pass < passes; pass++) {
    changed = false;
    const tended = await tendFleet(carry);
    await condition(() => changed, waits[tended]);
  }
  await continueAsNew<typeof keepFleet>(carry);
}
