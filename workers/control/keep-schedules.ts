/** Keeps what Temporal holds of this stack's schedules as the stores say, whatever was lost. */
import { setTimeout as delay } from 'node:timers/promises';
import { errorToJson } from '../../core/errors.ts';
import type { Store } from '../../core/ports.ts';
import { tendSchedule } from '../../infra/schedules/tend.ts';
import type { TendPorts } from '../../infra/schedules/tend.ts';
import { isInUse, isPaidByRequest, knownStores } from '../../infra/store/places.ts';
import { listScheduleNames } from '../../infra/store/schedule-log.ts';
import type { ScheduleLog } from '../../infra/store/schedule-log.ts';

/** How often it is looked whether each is there. A listing of each store, and a few questions for each schedule. */
const everyMs = 5_000;
/** Of these looks, at a store where each listing is paid for: one in twelve. */
const paidTurns = 12;

export interface KeepSchedulesPorts extends TendPorts {
  readonly home: string;
  readonly openStore: (url: string) => Promise<Store>;
  readonly openScheduleLog: (store: Store, name: string) => ScheduleLog;
  readonly log: (line: string) => void;
}

/** Looks again and again until the signal. A server or a store that is away is asked again. */
export async function keepSchedules(ports: KeepSchedulesPorts, signal: AbortSignal): Promise<void> {
  for (let turn = 0; !signal.aborted; turn++) {
    for (const { url } of knownStores(ports.home)) {
      if (isInUse(url) && (turn % paidTurns === 0 || !isPaidByRequest(url)))
        await keepThoseOf(url, ports).catch((error: unknown) =>
          ports.log(`cannot look after the schedules of ${url}: ${errorToJson(error).message}`),
        );
    }
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

async function keepThoseOf(url: string, ports: KeepSchedulesPorts): Promise<void> {
  const store = await ports.openStore(url);
  for (const name of await listScheduleNames(store)) {
    try {
      const tended = await tendSchedule(ports, ports.openScheduleLog(store, name), new Date());
      if (tended === 'made' || tended === 'changed')
        ports.log(`schedule ${name}: ${tended} in Temporal, as the store says`);
    } catch (error) {
      ports.log(`schedule ${name}: ${errorToJson(error).message}`);
    }
  }
}
