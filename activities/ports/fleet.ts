/** What the activity of the fleet needs besides the store. The control process provides it. */
import type { NotedPlan } from '../../core/fleet/types.ts';
import type { FleetSpec } from '../../core/fleet/spec.ts';
import type { ObservedRun } from '../../core/fleet/demand.ts';
import type { Provider } from '../../core/ports/provider.ts';
import type { Store } from '../../core/ports/store.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import type { FleetLog } from '../../log/fleet/fleet-log.ts';

export interface FleetPorts {
  readonly provider: Provider;
  readonly openFleet: (store: Store) => FleetLog;
  /**
   * Throws InvalidInputError when this stack does not listen for other machines, and when the user data is over 16 KB.
   */
  readonly prepareLaunch: (launch: LaunchFacts) => Promise<LaunchWords>;
  /** The runs of this stack in this store that are to go on. */
  readonly observeRuns: (store: Store) => Promise<readonly ObservedRun[]>;
  /** The run is to pause at a committed iteration, for this reason. */
  readonly pauseRun: (store: Store, run: string, because: string) => Promise<void>;
  /** Tells a machine that has joined to end its jobs and leave. */
  readonly tellToLeave: (instance: string) => void;
  /** Keeps the plan for `petrel fleet explain` and `petrel status`. */
  readonly notePlan: (plan: NotedPlan) => void;
  /** The same when a pass has failed. */
  readonly noteTrouble: (because: string) => void;
  /** A line in the log of the control process and in those of the runs that are driven. */
  readonly say: (text: string) => void;
}

export interface LaunchFacts {
  readonly pool: string;
  readonly roles: FleetSpec['pools'][string]['roles'];
  readonly launch: number;
  readonly store: Store;
  readonly region: string;
  readonly lonelySeconds: number;
  readonly ownScorers: 'sandboxed' | 'open';
  readonly engines: JoinFile['engines'];
  /** ISO times: until when its machines may join, and when they end themselves. */
  readonly joinUntil: string;
  readonly expires: string;
}

/** The words of a launch, as in the launch's record. */
export interface LaunchWords {
  readonly token: string;
  readonly nonce: string;
  readonly userData: string;
}
