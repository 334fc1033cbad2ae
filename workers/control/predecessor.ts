/**
 * What a control process that died had in hand. Temporal would find out by the heartbeats that do not come; the process
 * that takes its place knows already, and says so: its activities are tried again at once.
 */
import { hostname } from 'node:os';
import type { Client } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { errorToJson } from '../../core/errors.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { isAlive, ownIdentity } from '../../infra/stack/process.ts';

const namespace = 'default';
/** `4711.882347@host`: a process by pid and start time, and its machine. */
const pattern = /^(\d+)\.(\d+)@(.*)$/;

/** How this process calls itself at the Temporal server. */
export function temporalIdentity(): string {
  const { pid, startTime } = ownIdentity();
  return `${pid}.${startTime}@${hostname()}`;
}

/** Hands back what dead processes of this machine hold of the runs that this stack drives. A run that cannot be asked about is left to its heartbeats. */
export async function handBack(client: Client, home: string, log: (line: string) => void): Promise<void> {
  await Promise.all(
    drivenRuns(home).map(({ runId }) =>
      handBackRun(client, runId).catch((error: unknown) =>
        log(`${runId}: what the last control process held is not handed back: ${errorToJson(error).message}`),
      ),
    ),
  );
}

async function handBackRun(client: Client, runId: string): Promise<void> {
  const execution = { workflowId: runId };
  // Its next task would wait for a while in the queue of its own that the dead process kept.
  await client.workflowService.resetStickyTaskQueue({ namespace, execution });
  const { pendingActivities } = await client.workflowService.describeWorkflowExecution({ namespace, execution });
  const orphans = (pendingActivities ?? []).filter(({ lastWorkerIdentity }) => isDead(lastWorkerIdentity ?? ''));
  const failure = ApplicationFailure.create({
    message: 'the control process that waited for it is gone',
    type: 'PreemptedError',
    nextRetryDelay: '1 ms',
  });
  for (const { activityId } of orphans) {
    // One that has timed out meanwhile is being tried again anyway.
    await client.activity.fail({ workflowId: runId, activityId: activityId ?? '' }, failure).catch(() => undefined);
  }
}

function isDead(identity: string): boolean {
  const [, pid, startTime, host] = pattern.exec(identity) ?? [];
  return (
    pid !== undefined && startTime !== undefined && host === hostname() && !isAlive({ pid: Number(pid), startTime })
  );
}
