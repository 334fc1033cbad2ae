/**
 * A run that a stack drives. A run without a note is not driven, even if someone starts a workflow for it. If a run's
 * workflow is lost with the Temporal server's database, the note causes its restart. The state of a run is in its
 * store, not here.
 */
import type { RunKind } from '../../core/run-kinds.ts';

export interface DrivenRun {
  readonly runId: string;
  readonly store: string;
  readonly kind: RunKind;
}

/** A run as it is noted. */
export interface NotedRun extends DrivenRun {
  /** A command is about to queue the run again and start its workflow: its state in the store may be an old one. */
  readonly isStarting: boolean;
  /** What tells its notes from later ones of the same run. */
  readonly notes: readonly string[];
}

/**
 * Files of this home, or objects in the store of a stack of several machines: each of them then drives all the runs.
 */
export interface DrivenRuns {
  /** Words for people about the place where a run is noted. */
  readonly place: string;
  note(run: DrivenRun): Promise<void>;
  /**
   * Notes the run as `note` does, before this process queues an ended run again. If the process dies after that, the
   * run is started.
   */
  noteToStart(run: DrivenRun): Promise<void>;
  /** True when a command of this stack, or one of its schedules, started this run in this store. Throws as `all`. */
  drives(run: Pick<DrivenRun, 'runId' | 'store'>): Promise<boolean>;
  /** Objects or files that are not notes are left out. Throws RetryableError when they cannot be read. */
  all(): Promise<readonly NotedRun[]>;
  /** Forgets what `all` has returned. A note that was written later stays. */
  forget(run: NotedRun): Promise<void>;
}
