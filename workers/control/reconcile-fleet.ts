/** The fleet of this stack has a workflow. It is started again when Temporal has lost it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { errorToJson } from '../../core/errors.ts';
import { fleetStore } from '../../infra/stack/fleet-notes.ts';
import { keepsFleet, startFleetWorkflow } from '../../infra/temporal/fleet-workflow.ts';

/** How often it is looked for. */
const lookMs = 5_000;

export interface ReconcileFleetPorts {
  readonly home: string;
  readonly client: Client;
  readonly log: (line: string) => void;
}

/** Reconciles the fleet until the signal is aborted. When Temporal does not answer, the next round tries again. */
export async function reconcileFleet({ home, client, log }: ReconcileFleetPorts, signal: AbortSignal): Promise<void> {
  let said: string | undefined;
  while (!signal.aborted) {
    try {
      const store = fleetStore(home);
      if (store !== undefined && !(await keepsFleet(client, store))) await startFleetWorkflow(client, store);
      said = undefined;
    } catch (error) {
      const { message } = errorToJson(error);
      if (message !== said) log(`the fleet's workflow: ${message}`);
      said = message;
    }
    await delay(lookMs, undefined, { signal }).catch(() => undefined);
  }
}
