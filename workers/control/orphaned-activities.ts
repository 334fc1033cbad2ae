/**
 * Activities that a dead control process was executing. Temporal would notice only when their heartbeats stop. So the
 * next control process fails them at once, and Temporal retries them.
 */
import { ActivityNotFoundError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { errorToJson } from '../../core/errors.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { instanceName } from '../../infra/stack/identity.ts';
import { isAlive, ownIdentity } from '../../infra/stack/process.ts';

/** A process by pid and start time, and the instance of its machine: `4711.882347@laptop-3f9a2c`. */
const pattern = /^(\d+)\.(\d+)@(.*)$/;

/** The identity under which this process polls the Temporal server. */
export function temporalIdentity(instance: string): string {
  const { pid, startTime } = ownIdentity();
  return `${pid}.${startTime}@${instance}`;
}

/**
 * Fails the activities of this stack's runs that dead processes of this machine were executing. If that does not work
 * for a run, its heartbeat timeout has the same effect a little later.
 */
export async function failOrphanedActivities(client: Client, home: string, log: (line: string) => void): Promise<void> {
  await Promise.all(
    (await drivenRuns(home).all()).map(({ runId }) =>
      failOrphansOf(client, runId, instanceName(home)).catch((error: unknown) =>
        log(`${runId}: could not fail the activities of the last control process: ${errorToJson(error).message}`),
      ),
    ),
  );
}

async function failOrphansOf(client: Client, runId: string, instance: string): Promise<void> {
  const execution = { workflowId: runId };
  const { namespace } = client.options;
  // Without this, the next workflow task would wait for a while in the dead process's own (sticky) task queue.
  await client.workflowService.resetStickyTaskQueue({ namespace, execution });
  const { pendingActivities } = await client.workflowService.describeWorkflowExecution({ namespace, execution });
  const orphans = (pendingActivities ?? []).filter(({ lastWorkerIdentity }) =>
    isDead(lastWorkerIdentity ?? '', instance),
  );
  const failure = ApplicationFailure.create({
    message: 'the control process that waited for it is gone',
    type: 'PreemptedError',
    nextRetryDelay: '1 ms',
  });
  for (const { activityId } of orphans) {
    await client.activity
      .fail({ workflowId: runId, activityId: activityId ?? '' }, failure)
      .catch(unlessRetriedAlready);
  }
}

/** An activity that has timed out since the description cannot be failed. Temporal retries it anyway. */
function unlessRetriedAlready(error: unknown): void {
  if (!(error instanceof ActivityNotFoundError)) throw error;
}

function isDead(identity: string, instance: string): boolean {
  const [, pid, startTime, machine] = pattern.exec(identity) ?? [];
  return (
    pid !== undefined && startTime !== undefined && machine === instance && !isAlive({ pid: Number(pid), startTime })
  );
}
