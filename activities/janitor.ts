/** The janitor's activity: removes unreachable objects (log/retention). */
import type { ActivityPorts } from './ports/index.ts';

/** The store, as an argument of the janitor's workflow. */
export interface StoreRef {
  readonly store: string;
}

/** Numbers only, so that the history does not grow with the store. */
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
