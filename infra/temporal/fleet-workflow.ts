/** The workflow that keeps the fleet of this stack in one store. */
import type { Client } from '@temporalio/client';
import { fleetChangedSignal, taskQueue } from '../../core/wire/workflow.ts';
import { digestOf } from '../../log/objects/digest.ts';

const idOf = (store: string): string => `fleet-${digestOf(store).slice(0, 12)}`;

/** Starts the workflow, or joins the one that runs; either looks at once. */
export async function startFleetWorkflow(client: Client, store: string): Promise<void> {
  await client.workflow.signalWithStart('keepFleet', {
    workflowId: idOf(store),
    taskQueue,
    args: [{ store }],
    signal: fleetChangedSignal,
    workflowTaskTimeout: '2 s',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
}

/** Does it run? */
export async function keepsFleet(client: Client, store: string): Promise<boolean> {
  try {
    return (await client.workflow.getHandle(idOf(store)).describe()).status.name === 'RUNNING';
  } catch (error) {
    if (error instanceof Error && error.name === 'WorkflowNotFoundError') return false;
    throw error;
  }
}
