/** The bare loop's workflow: it only runs activities one after the other. It runs in Temporal's sandbox. */
import { proxyActivities } from '@temporalio/workflow';
import type { BareActivities } from './activities.ts';

const { stage } = proxyActivities<BareActivities>({ startToCloseTimeout: '1 minute', retry: { maximumAttempts: 1 } });

export async function bareLoop(iterations: number, stages: number): Promise<void> {
  for (let k = 0; k < iterations; k++) {
    for (let index = 0; index < stages; index++) await stage(index);
  }
}
