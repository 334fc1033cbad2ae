/** The ports of the activities. The control process provides them; tests fake only these. */
import type { PauseError } from '../core/errors.ts';
import type { Store } from '../core/ports/store.ts';
import type { Sweep } from '../infra/retention/sweep.ts';
import type { Dispatcher, jobIdOf } from '../infra/nats/dispatcher.ts';
import type { batchToAdopt } from '../infra/store/earlier-batches.ts';
import type { runStateOf } from '../infra/store/digest.ts';
import type { needShards, putManifest } from '../infra/store/manifests.ts';
import type { Head, RunLog } from '../infra/store/run-log.ts';
import type { standbyStart } from '../infra/store/standby-start.ts';
import type { openNextTerm } from '../infra/store/terms.ts';
import type { appendStatus, pausesFor } from '../infra/store/status.ts';
import type { decide } from '../infra/store/records.ts';
import type { getBlob, getJsonBlob, putBlob, putJsonBlob } from '../infra/store/blobs.ts';
import type { FleetPorts } from './fleet/ports.ts';
import type { SchedulePorts } from './schedule-ports.ts';
import type { EventCounts } from '../infra/fleet/event-counts.ts';
import type { LogLine, Presence } from '../core/wire/messages.ts';

export interface ActivityPorts {
  /** Name of this control process, for records. */
  readonly process: string;
  /** Name of the stack, for records: who drives a run. */
  readonly stack: string;
  readonly openStore: (url: string) => Promise<Store>;
  /** True for a run that is registered in this stack's home. A message may name any run. */
  readonly drivesRun: (run: { readonly runId: string; readonly store: string }) => Promise<boolean>;
  /** A record that is missing although later ones exist, if any. */
  readonly findHole: (log: RunLog, head: Head | undefined) => Promise<PauseError | undefined>;
  readonly batchToAdopt: typeof batchToAdopt;
  readonly openNextTerm: typeof openNextTerm;
  readonly standbyStart: typeof standbyStart;
  /** Throws PauseError `DiskFull` when there is too little room for new work. */
  readonly admitWork: (store: Store) => Promise<void>;
  readonly openLog: (store: Store, runId: string) => RunLog;
  readonly appendStatus: typeof appendStatus;
  readonly pausesFor: typeof pausesFor;
  readonly decide: typeof decide;
  readonly runStateOf: typeof runStateOf;
  readonly putManifest: typeof putManifest;
  readonly needShards: typeof needShards;
  readonly getBlob: typeof getBlob;
  readonly putBlob: typeof putBlob;
  readonly getJsonBlob: typeof getJsonBlob;
  readonly putJsonBlob: typeof putJsonBlob;
  readonly dispatcher: Pick<
    Dispatcher,
    | 'run'
    | 'settle'
    | 'releaseLease'
    | 'isWanted'
    | 'untilWanted'
    | 'endTurn'
    | 'servesWeights'
    | 'announceWeights'
    | 'cancelJobs'
    | 'runResumed'
  >;
  readonly jobIdOf: typeof jobIdOf;
  readonly listWorkers: () => Promise<Presence[]>;
  readonly schedules: SchedulePorts;
  readonly fleet: FleetPorts;
  /** What became of workers since the last commit of a run. */
  readonly events: Pick<EventCounts, 'begin' | 'count' | 'end'>;
  readonly say: (runId: string, level: LogLine['level'], text: string) => void;
  /** Publishes the progress of a running stage for live views. */
  readonly live: (runId: string, note: LiveNote) => void;
  /** Completes a removal that a janitor started, before the run becomes active again. */
  readonly endSweep: (log: RunLog, now: Date) => Promise<void>;
  /**
   * A janitor's pass over a store; reports what it removed from a run. Removes nothing more once the signal is aborted.
   */
  readonly sweepStore: (
    store: Store,
    say: (runId: string, text: string) => void,
    now: Date,
    signal: AbortSignal,
  ) => Promise<Sweep>;
  readonly now: () => Date;
  /**
   * Called when an attempt starts. The returned function says whether the attempt has timed out since; then another
   * attempt may have done its work.
   */
  readonly beginAttempt: () => () => boolean;
  /** Runs a wait with heartbeats to Temporal; the wait ends when the activity is cancelled. */
  readonly whileHeartbeating: <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;
}

export interface LiveNote {
  readonly stage: string;
  readonly iteration: number;
  readonly done: number;
  readonly total: number;
  readonly note: string;
  /** Why the stage makes no progress: no worker, or the trainer is leased to another run. */
  readonly queued?: string;
}
