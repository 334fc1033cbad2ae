import type { RunKind } from '../../core/run-kinds.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import type { RunInputs, RunRecord } from '../../core/records/schema.ts';
import type { RunCarry } from '../../core/wire/workflow.ts';
import type { NewRun } from '../../log/run/new-run.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import type { ScheduleLog } from '../../log/schedules/schedule-log.ts';

/** The ports of the schedule activities. */
export interface SchedulePorts {
  /** Returns the same object for the same schedule, because it caches what it has read. */
  readonly openScheduleLog: (store: Store, name: string) => ScheduleLog;
  readonly readModule: (store: Store, name: string, digest: Digest) => Promise<Uint8Array>;
  /** False: one of the inputs was being removed and must be stored again. */
  readonly keepInputs: (store: Store, inputs: RunInputs) => Promise<boolean>;
  /** False when the id is taken. */
  readonly claimRun: (log: RunLog, record: Omit<RunRecord, 'format' | 'runId'>) => Promise<boolean>;
  /** Writes the run whose id was claimed. A run that has a state already is left unchanged. */
  readonly writeRun: (log: RunLog, run: NewRun, now: Date) => Promise<void>;
  /** Starts the run's workflow, or joins the running one. */
  readonly startRun: (carry: RunCarry, kind: RunKind) => Promise<void>;
  /** Signals a recorded desired state to the run's workflow. Resolves with false when there is no workflow. */
  readonly tellRun: (runId: RunId, desired: 'cancel') => Promise<boolean>;
}
