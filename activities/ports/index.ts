/** The ports of the activities, by area. The control process provides them; tests fake only these. */
import type { AttemptPorts } from './attempt.ts';
import type { BlobPorts } from './blobs.ts';
import type { DispatchPorts } from './dispatch.ts';
import type { FleetPorts } from './fleet.ts';
import type { LogPorts } from './log.ts';
import type { SchedulePorts } from './schedules.ts';
import type { StackPorts } from './stack.ts';
import type { TellPorts } from './tell.ts';

export type { LiveNote } from './tell.ts';

export interface ActivityPorts extends StackPorts, TellPorts, AttemptPorts, LogPorts, BlobPorts, DispatchPorts {
  readonly schedules: SchedulePorts;
  readonly fleet: FleetPorts;
}
