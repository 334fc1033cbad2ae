/** All activities of a control process, made from its ports. */
import { headActivities } from './head.ts';
import { janitorActivities } from './janitor.ts';
import type { ActivityPorts } from './ports.ts';
import { Recompute } from './recompute.ts';
import { RunContexts } from './run-context.ts';
import { scheduleActivities } from './schedules.ts';
import { stageActivities } from './stages/index.ts';

export type { ActivityPorts, LiveNote } from './ports.ts';
export type { RecoveredHead } from './head.ts';
export type { RunRef } from './run-context.ts';
export type { UpdateSummary } from './stages/index.ts';

export function createActivities(ports: ActivityPorts) {
  const contexts = new RunContexts(ports);
  const recompute = new Recompute(ports);
  return {
    ...headActivities(ports, contexts, recompute),
    ...stageActivities(ports, contexts, recompute),
    ...scheduleActivities(ports),
    ...janitorActivities(ports),
  };
}

export type Activities = ReturnType<typeof createActivities>;
