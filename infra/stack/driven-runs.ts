/**
 * The runs that this stack drives. A run without a note is not driven, even if someone starts a workflow for it. If a
 * run's workflow is lost with the Temporal server's database, the note causes its restart. The state of a run is in its
 * store, not here.
 */
import type { RunKind } from '../../core/run-kinds.ts';
import { knownStores } from '../store/places.ts';
import { HomeRuns } from './driven-in-home.ts';
import { StoreRuns } from './driven-in-store.ts';
import { instanceName } from './identity.ts';
import { sharedStack } from './state.ts';

export interface DrivenRun {
  readonly runId: string;
  readonly store: string;
  readonly kind: RunKind;
}

/** A run as it is noted. */
export interface NotedRun extends DrivenRun {
  /** A command is about to queue the run again and start its workflow: its state in the store may be an old one. */
  readonly isStarting: boolean;
  /** Keys of its notes, where there can be several. */
  readonly notes: readonly string[];
}

/** Files of this home, or objects in the store of a stack of several machines: each of them then drives all the runs. */
export interface DrivenRuns {
  /** For people: where a run is noted. */
  readonly place: string;
  note(run: DrivenRun): Promise<void>;
  /** As `note`, before this process queues an ended run again. If the process dies after that, the run is started. */
  noteToStart(run: DrivenRun): Promise<void>;
  /** True when a command of this stack, or one of its schedules, started this run in this store. Throws as `all`. */
  drives(run: Pick<DrivenRun, 'runId' | 'store'>): Promise<boolean>;
  /** Notes that are none are left out. Throws RetryableError when they cannot be read. */
  all(): Promise<readonly NotedRun[]>;
  /** Forgets what `all` has returned. A note that was written later stays. */
  forget(run: NotedRun): Promise<void>;
}

const known = new Map<string, DrivenRuns>();

/** One object for each home, because it remembers what it has read. */
export function drivenRuns(home: string): DrivenRuns {
  const shared = sharedStack(home);
  const name = JSON.stringify([home, shared]);
  const runs = known.get(name) ?? (shared ? new StoreRuns(shared, instanceName(home)) : new HomeRuns(home));
  known.set(name, runs);
  return runs;
}

/**
 * True for a store that a command of this home has named, and for the store of a run that this stack drives. Throws as
 * `all`.
 */
export async function servesStore(home: string, url: string): Promise<boolean> {
  if (knownStores(home).some((one) => one.url === url)) return true;
  return (await drivenRuns(home).all()).some(({ store }) => store === url);
}
