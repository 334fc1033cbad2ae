/** All activities of a control process, made from its ports. */
import { fleetActivities } from './fleet/index.ts';
import { janitorActivities } from './janitor.ts';
import { openTerm } from './open-term.ts';
import type { ActivityPorts } from './ports.ts';
import { recordState } from './record-state.ts';
import type { StateToRecord } from './record-state.ts';
import { recoverHead } from './recover-head.ts';
import { Recompute } from './recompute.ts';
import { RunContexts } from './run-context.ts';
import type { RunRef } from './run-context.ts';
import { scheduleActivities } from './schedules.ts';
import { stageActivities } from './stages/index.ts';

export type { ActivityPorts, LiveNote } from './ports.ts';
export type { RecoveredHead } from './recover-head.ts';
export type { RunRef } from './run-context.ts';
export type { UpdateSummary } from './stages/index.ts';

export function createActivities(ports: ActivityPorts) {
  const contexts = new RunContexts(ports);
  const recompute = new Recompute(ports);
  return {
    recoverHead: (ref: RunRef) => recoverHead(ports, contexts, ref),
    openTerm: (ref: RunRef) => openTerm(ports, recompute, contexts, ref),
    recordState: (input: StateToRecord) => recordState({ ports, contexts, recompute }, input),
    ...stageActivities(ports, contexts, recompute),
    ...scheduleActivities(ports),
    ...janitorActivities(ports),
    ...fleetActivities(ports),
  };
}

export type Activities = ReturnType<typeof createActivities>;
