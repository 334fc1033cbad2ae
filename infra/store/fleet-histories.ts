/** The records of instances as core/fleet/bill.ts reads them. */
import type { InstanceHistory } from '../../core/fleet/bill.ts';
import type { KnownInstance } from './fleet-log.ts';

const seconds = (iso: string): number => Date.parse(iso) / 1_000;

export function historiesOf(instances: readonly KnownInstance[]): InstanceHistory[] {
  return instances.map(({ id, launch: { pool, place }, launchedAt, joined, ended }) => ({
    ...{ id, pool, zone: place.zone, usdPerHour: place.usdPerHour, launchedAt: seconds(launchedAt) },
    ...(joined && { joined: { at: seconds(joined.at), instance: joined.instance } }),
    ...(ended && { endedAt: seconds(ended.at) }),
  }));
}
