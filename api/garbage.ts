/** A janitor's pass now, over every store that this machine knows. */
import { sweepStore } from '../log/retention/sweep.ts';
import type { Sweep } from '../log/retention/sweep.ts';
import type { ApiContext } from './context.ts';
import { openKnownStores } from './stores/find.ts';

export interface StoreSweep extends Sweep {
  /** URL of the store. */
  readonly store: string;
}

export interface GarbageRequest {
  /** How long something must have been garbage before it is removed, in milliseconds. */
  readonly graceMs: number;
  /** Say what would be removed, and remove nothing. */
  readonly dryRun?: boolean;
}

export async function collectGarbage(
  { graceMs, dryRun = false }: GarbageRequest,
  context: ApiContext,
): Promise<StoreSweep[]> {
  const sweeps: StoreSweep[] = [];
  for (const store of await openKnownStores(context.home, context.notice))
    sweeps.push({ store: store.url, ...(await sweepStore(store, { now: new Date(), graceMs, dryRun })) });
  return sweeps;
}
