/** The activity of the fleet's workflow. */
import type { StoreRef } from '../janitor.ts';
import type { ActivityPorts } from '../ports.ts';
import { tendFleet } from './tend.ts';
import type { Tended } from './tend.ts';

export type { FleetPorts } from './ports.ts';
export type { Tended } from './tend.ts';

export function fleetActivities(ports: ActivityPorts) {
  return {
    tendFleet: (ref: StoreRef): Promise<Tended> => ports.whileHeartbeating(() => tendFleet(ports, ref)),
  };
}
