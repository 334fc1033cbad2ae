/** Reconciles the Temporal Schedules of this stack with the schedules in its stores. */
import { setTimeout as delay } from 'node:timers/promises';
import { errorToJson } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { reconcileSchedule } from '../../infra/temporal/reconcile-schedule.ts';
import type { ReconcilePorts } from '../../infra/temporal/reconcile-schedule.ts';
import { isInUse, isPaidByRequest, storesOfStack } from '../../infra/store/places.ts';
import { listScheduleNames } from '../../log/schedules/schedule-log.ts';
import type { ScheduleLog } from '../../log/schedules/schedule-log.ts';

/** How often they are compared. It costs one listing per store and a few requests per schedule. */
const everyMs = 5_000;
/** A store that charges for listings is compared in one of this many rounds. */
const paidRounds = 12;

export interface ReconcileSchedulesPorts extends ReconcilePorts {
  readonly home: string;
  readonly openStore: (url: string) => Promise<Store>;
  readonly openScheduleLog: (store: Store, name: string) => ScheduleLog;
  readonly log: (line: string) => void;
}

/**
 * Reconciles all schedules until the signal is aborted. When a server or a store does not answer, the next round tries
 * again.
 */
export async function reconcileSchedules(ports: ReconcileSchedulesPorts, signal: AbortSignal): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    await reconcileAll(ports, round).catch((error: unknown) =>
      ports.log(`could not compare the schedules with Temporal: ${errorToJson(error).message}`),
    );
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

async function reconcileAll(ports: ReconcileSchedulesPorts, round: number): Promise<void> {
  for (const { url } of storesOfStack(ports.home)) {
    if (isInUse(url) && (round % paidRounds === 0 || !isPaidByRequest(url)))
      await reconcileStore(url, ports).catch((error: unknown) =>
        ports.log(`could not compare the schedules of ${url} with Temporal: ${errorToJson(error).message}`),
      );
  }
}

async function reconcileStore(url: string, ports: ReconcileSchedulesPorts): Promise<void> {
  const store = await ports.openStore(url);
  for (const name of await listScheduleNames(store)) {
    try {
      const outcome = await reconcileSchedule(ports, ports.openScheduleLog(store, name), new Date());
      if (outcome === 'made' || outcome === 'changed')
        ports.log(`schedule ${name}: ${outcome} in Temporal to match the store`);
    } catch (error) {
      ports.log(`schedule ${name}: ${errorToJson(error).message}`);
    }
  }
}
