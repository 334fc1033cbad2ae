/**
 * Every store that this machine uses has a janitor: a Temporal Schedule. It is created again when Temporal has lost it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { errorToJson } from '../../core/errors.ts';
import { digestOf } from '../../log/objects/digest.ts';
import { isInUse, isPaidByRequest, storesOfStack } from '../../infra/store/places.ts';
import { ensureSchedule, removeSchedule } from '../../infra/temporal/schedules.ts';

/** Interval of a janitor's passes. A later pass removes what one pass has marked, after the grace period. */
const everyMs = 10 * 60_000;
/** The same for stores that charge for each of the dozens of requests per run. */
const paidEveryMs = 60 * 60_000;
/** How often the Schedules are compared with the known stores. */
const lookMs = 60_000;

export interface ReconcileJanitorsPorts {
  readonly home: string;
  readonly client: Client;
  readonly log: (line: string) => void;
}

/** Id of the Schedule, and of its workflows. */
export const janitorId = (store: string): string => `janitor-${digestOf(store).slice(0, 12)}`;

/**
 * Reconciles all janitors until the signal is aborted. A missing folder gets none, because a pass would create it in an
 * empty mount point.
 */
export async function reconcileJanitors(ports: ReconcileJanitorsPorts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await reconcileAll(ports).catch((error: unknown) => ports.log(`the janitors: ${errorToJson(error).message}`));
    await delay(lookMs, undefined, { signal }).catch(() => undefined);
  }
}

async function reconcileAll({ home, client, log }: ReconcileJanitorsPorts): Promise<void> {
  for (const { url } of storesOfStack(home)) {
    await (isInUse(url) ? ensureJanitor(client, url) : removeSchedule(client, janitorId(url))).catch((error: unknown) =>
      log(`the janitor of ${url}: ${errorToJson(error).message}`),
    );
  }
}

async function ensureJanitor(client: Client, store: string): Promise<void> {
  const id = janitorId(store);
  await ensureSchedule(client, {
    id,
    times: { type: 'every', everyMs: isPaidByRequest(store) ? paidEveryMs : everyMs },
    catchUpMs: 10_000,
    overlap: 'skip',
    paused: false,
    note: `removes objects that no run in ${store} needs any more`,
    action: { workflow: 'janitor', workflowId: id, args: [{ store }] },
  });
}
