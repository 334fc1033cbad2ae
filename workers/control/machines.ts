/** How machines come to the stack and how it learns that they are gone. */
import { join } from 'node:path';
import { openJoinOffice } from '../../infra/nats/access/join-office.ts';
import { Departures } from '../../infra/nats/access/departures.ts';
import type { Dispatcher } from '../../infra/nats/jobs/dispatcher.ts';
import { PermitOffice } from '../../infra/nats/permits/permit-office.ts';
import { noteJoined } from '../../infra/stack/fleet-register.ts';
import { LeftMachines } from '../../infra/stack/index.ts';
import { readEndpoints } from '../../infra/stack/state.ts';
import type { ControlFleet } from './fleet.ts';
import { openServed, OwnBuild } from './own-build.ts';
import type { ControlPlace } from './place.ts';
import type { WorkerWatch } from './worker-watch.ts';

export interface MachineListeners {
  readonly dispatcher: Dispatcher;
  readonly watch: WorkerWatch;
  readonly fleet: ControlFleet;
}

export function openOffices(place: ControlPlace, { dispatcher, watch, fleet }: MachineListeners): void {
  const { home, stack, stackName, instance, nc, system, log } = place;
  if (system !== undefined)
    new Departures(
      system,
      (gone) => {
        dispatcher.lost(gone);
        watch.events.lost(gone, Date.now());
        fleet.lost(gone.instance);
      },
      stack.nats.ofOthers ? stack.nats.credential?.jwt : undefined,
    );
  new PermitOffice(nc, { file: join(home, 'stack', 'permits.json'), log }).open();
  const account = readEndpoints(home)?.nats?.authority.workers;
  if (stack.listen === undefined || account === undefined) return;
  const build = new OwnBuild(home);
  const left = new LeftMachines(home);
  openJoinOffice(nc, system, {
    ...{ account, stackInstance: instance, stackName },
    publishBuild: (store) => build.publish(store),
    left: (machine) => {
      log(`a machine of the pool ${machine.pool} (${machine.host}) cannot work: ${machine.message}`);
      left.note(machine);
    },
    joined: (machine) => noteJoined(home, machine),
    isRevoked: (key) => readEndpoints(home)?.nats?.authority.revoked?.[key] !== undefined,
    admitBought: async (machine) => fleet.admit(machine, await openServed(home, machine.store)),
  });
}
