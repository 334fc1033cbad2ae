/** A Schedule for every store that this machine uses: its janitor. Made again when Temporal's database was lost. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { errorToJson } from '../../core/errors.ts';
import { digestOf } from '../../infra/store/digest.ts';
import { isInUse, isPaidByRequest, knownStores } from '../../infra/store/places.ts';
import { ensureSchedule, removeSchedule } from '../../infra/temporal/schedules.ts';

/** How often a store is gone over. What is condemned in one pass is removed by the next one after the grace. */
const everyMs = 10 * 60_000;
/** The same where each of the dozens of requests for every run is paid for. */
const paidEveryMs = 60 * 60_000;
/** How often it is looked for new stores. */
const lookMs = 60_000;

export interface JanitorPorts {
  readonly home: string;
  readonly client: Client;
  readonly log: (line: string) => void;
}

/** Id of the Schedule, and of its workflows. */
export const janitorId = (store: string): string => `janitor-${digestOf(store).slice(0, 12)}`;

/** Looks again and again until the signal. A folder that is gone has no janitor: it would be made anew, where a disk is to be mounted. */
export async function keepJanitors({ home, client, log }: JanitorPorts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const { url } of knownStores(home)) {
      await (isInUse(url) ? ensureJanitor(client, url) : removeSchedule(client, janitorId(url))).catch(
        (error: unknown) => log(`the janitor of ${url}: ${errorToJson(error).message}`),
      );
    }
    await delay(lookMs, undefined, { signal }).catch(() => undefined);
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
    note: `removes what no run in ${store} needs any more`,
    action: { workflow: 'janitor', workflowId: id, args: [{ store }] },
  });
}
