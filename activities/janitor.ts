/** Removes what nothing reaches any more: infra/retention says what that is. */
import type { ActivityPorts } from './ports.ts';

/** Which store, as the janitor's workflow is told. */
export interface StoreRef {
  readonly store: string;
}

/** Figures only: a history does not grow with the store. */
export interface SweepSummary {
  readonly runs: number;
  readonly removedObjects: number;
  readonly removedBytes: number;
}

export function janitorActivities(ports: ActivityPorts) {
  return {
    async sweep({ store }: StoreRef): Promise<SweepSummary> {
      const opened = await ports.openStore(store);
      const { runs } = await ports.whileHeartbeating((signal) =>
        ports.sweepStore(opened, (runId, text) => ports.say(runId, 'info', text), ports.now(), signal),
      );
      return {
        runs: runs.length,
        removedObjects: runs.reduce((sum, { removed }) => sum + removed.objects, 0),
        removedBytes: runs.reduce((sum, { removed }) => sum + removed.bytes, 0),
      };
    },
  };
}
