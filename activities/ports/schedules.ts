import type { RunKind } from '../../core/run-kinds.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import type { RunCarry } from '../../core/wire/workflow.ts';
import type { keepInputs } from '../../log/retention/inputs.ts';
import type { claimRun, writeRun } from '../../log/run/new-run.ts';
import type { ScheduleLog } from '../../log/schedules/schedule-log.ts';

/** The ports of the schedule activities. */
export interface SchedulePorts {
  /** Returns the same object for the same schedule, because it caches what it has read. */
  readonly openScheduleLog: (store: Store, name: string) => ScheduleLog;
  readonly readModule: (store: Store, name: string, digest: Digest) => Promise<Uint8Array>;
  readonly keepInputs: typeof keepInputs;
  readonly claimRun: typeof claimRun;
  readonly writeRun: typeof writeRun;
  /** Starts the run's workflow, or joins the running one. */
  readonly startRun: (carry: RunCarry, kind: RunKind) => Promise<void>;
  /** Signals a recorded desired state to the run's workflow. Resolves with false when there is no workflow. */
  readonly tellRun: (runId: RunId, desired: 'cancel') => Promise<boolean>;
}
