/** The workflow that drives a run. Its id is the run's. */
import type { Client } from '@temporalio/client';
import { samplesResponses } from '../../core/run-kinds.ts';
import type { RunKind } from '../../core/run-kinds.ts';
import type { DesiredState } from '../../core/run-states.ts';
import { desiredStateSignal, liveQueryName, taskQueue } from '../../core/wire/workflow.ts';
import type { LiveState, RunCarry } from '../../core/wire/workflow.ts';

/** Starts the workflow, or joins the one that runs. */
export async function startRunWorkflow(client: Client, carry: RunCarry, kind: RunKind): Promise<void> {
  await client.workflow.start(samplesResponses(kind) ? 'trainRun' : 'sftRun', {
    workflowId: carry.runId,
    taskQueue,
    args: [carry],
    workflowTaskTimeout: '2 s',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
}

/** A workflow that drives a run now. */
export interface RunningWorkflow {
  readonly execution: string;
  readonly events: number;
  /** How many attempts its current workflow task has had. */
  readonly taskAttempts: number;
}

/** undefined when it has ended or never existed. */
export async function runningWorkflow(client: Client, runId: string): Promise<RunningWorkflow | undefined> {
  try {
    const { status, runId: execution, historyLength, raw } = await client.workflow.getHandle(runId).describe();
    if (status.name !== 'RUNNING') return undefined;
    return { execution, events: historyLength, taskAttempts: raw.pendingWorkflowTask?.attempt ?? 0 };
  } catch (error) {
    if (error instanceof Error && error.name === 'WorkflowNotFoundError') return undefined;
    throw error;
  }
}

/** Terminates one execution at any point; its committed work is in the store. */
export async function endRunWorkflow(client: Client, runId: string, execution: string, why: string): Promise<void> {
  await client.workflow.getHandle(runId, execution).terminate(why);
}

/** Timeout of a query. The worker may have to replay the workflow before it answers. */
const queryMs = 5_000;

/** The desired state that the run's workflow knows. Rejects when the workflow does not answer. */
export async function knownDesiredState(client: Client, runId: string): Promise<DesiredState> {
  const query = () => client.workflow.getHandle(runId).query<LiveState>(liveQueryName);
  return (await client.withDeadline(Date.now() + queryMs, query)).wish;
}

/** Signals a desired state that is recorded in the store. Resolves with false when no workflow drives the run. */
export async function tellRunWorkflow(client: Client, runId: string, desired: DesiredState): Promise<boolean> {
  try {
    await client.workflow.getHandle(runId).signal(desiredStateSignal, desired);
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'WorkflowNotFoundError') return false;
    throw error;
  }
}
