/** The records of instances as core/fleet/bill.ts reads them. */
import type { InstanceHistory } from '../../core/fleet/bill.ts';
import type { KnownInstance } from './fleet-log.ts';

const seconds = (iso: string): number => Date.parse(iso) / 1_000;

export function historiesOf(instances: readonly KnownInstance[]): InstanceHistory[] {
  return instances.map(({ id, launch: { pool, place }, launchedAt, joined, ready, ended }) => ({
    ...{ id, pool, zone: place.zone, usdPerHour: place.usdPerHour, launchedAt: seconds(launchedAt) },
    ...(joined && { instance: joined.instance }),
    ...(ready && { readyAt: seconds(ready.at) }),
    ...(ended && { endedAt: seconds(ended.at) }),
  }));
}
