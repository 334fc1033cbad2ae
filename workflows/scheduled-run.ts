/**
 * Handles one time of a schedule. The outcome is decided in the store, so this workflow may be lost, repeated or
 * started by hand.
 */
import { ApplicationFailure, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { FiringCarry, FiringOutcome } from '../core/wire/workflow.ts';

/** It may have to wait for another run to end. */
const { fireSchedule } = proxyActivities<Activities>({
  startToCloseTimeout: '365 days',
  heartbeatTimeout: '3 s',
  retry: { initialInterval: '200 ms', maximumInterval: '5 s' },
});

/** The time that this workflow handles. Temporal sets it on every workflow that a Schedule starts. */
const scheduledTime = { name: 'TemporalScheduledStartTime', type: 'DATETIME' } as const;

export async function scheduledRun(carry: FiringCarry): Promise<FiringOutcome> {
  const time = carry.time ?? workflowInfo().typedSearchAttributes.get(scheduledTime)?.toISOString();
  if (time === undefined)
    throw ApplicationFailure.nonRetryable('expected the scheduled time of this workflow', 'NoTime');
  return fireSchedule({ ...carry, time });
}
