/** All activities of a control process, made from its ports. */
import { fleetActivities } from './fleet/index.ts';
import { janitorActivities } from './janitor.ts';
import { openTerm } from './term/open-term.ts';
import type { ActivityPorts } from './ports/index.ts';
import { recordState } from './term/record-state.ts';
import type { StateToRecord } from './term/record-state.ts';
import { recoverHead } from './term/recover-head.ts';
import { Recompute } from './term/recompute.ts';
import { RunContexts } from './term/run-context.ts';
import type { RunRef } from './term/run-context.ts';
import { scheduleActivities } from './schedules.ts';
import { stageActivities } from './stages/index.ts';

export type { ActivityPorts, LiveNote } from './ports/index.ts';
export type { RecoveredHead } from './term/recover-head.ts';
export type { RunRef } from './term/run-context.ts';
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
