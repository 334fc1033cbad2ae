/** One time of a schedule: decided in the store, so that this workflow may be lost, repeated or started by somebody else. */
import { ApplicationFailure, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { FiringCarry, FiringOutcome } from '../core/wire/workflow.ts';

/** It may have to wait for another run to end. */
const { fireSchedule } = proxyActivities<Activities>({
  startToCloseTimeout: '365 days',
  heartbeatTimeout: '3 s',
  retry: { initialInterval: '200 ms', maximumInterval: '5 s' },
});

/** The time that an action stands for; Temporal sets it on every workflow that a Schedule starts. */
const scheduledTime = { name: 'TemporalScheduledStartTime', type: 'DATETIME' } as const;

export async function scheduledRun(carry: FiringCarry): Promise<FiringOutcome> {
  const time = carry.time ?? workflowInfo().typedSearchAttributes.get(scheduledTime)?.toISOString();
  if (time === undefined) throw ApplicationFailure.nonRetryable('expected the time that this stands for', 'NoTime');
  return fireSchedule({ ...carry, time });
}
