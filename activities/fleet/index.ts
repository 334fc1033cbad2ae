/** The activity of the fleet's workflow. */
import type { StoreRef } from '../janitor.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { FleetKeeper } from './keeper.ts';
import type { Tended } from './keeper.ts';

export type { FleetPorts } from '../ports/fleet.ts';
export type { Tended } from './keeper.ts';

export function fleetActivities(ports: ActivityPorts) {
  const keeper = new FleetKeeper(ports);
  return {
    tendFleet: (ref: StoreRef): Promise<Tended> => ports.whileHeartbeating(() => keeper.tend(ref)),
  };
}
