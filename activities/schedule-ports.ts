import type { Digest, RunId } from '../core/ids.ts';
import type { Store } from '../core/ports.ts';
import type { RunCarry } from '../core/wire/workflow.ts';
import type { keepInputs } from '../infra/retention/inputs.ts';
import type { claimRun, writeRun } from '../infra/store/new-run.ts';
import type { ScheduleLog } from '../infra/store/schedule-log.ts';

/** What the activities of schedules need from outside. */
export interface SchedulePorts {
  /** The same one for the same schedule: it remembers what it read. */
  readonly openScheduleLog: (store: Store, name: string) => ScheduleLog;
  readonly readModule: (store: Store, name: string, digest: Digest) => Promise<Uint8Array>;
  readonly keepInputs: typeof keepInputs;
  readonly claimRun: typeof claimRun;
  readonly writeRun: typeof writeRun;
  /** Starts the run's workflow, or joins it. */
  readonly startRun: (carry: RunCarry, kind: 'rl' | 'sft') => Promise<void>;
  /** Tells the run's workflow a desired state that is recorded in the store. Resolves with false when it has no workflow. */
  readonly tellRun: (runId: RunId, desired: 'cancel') => Promise<boolean>;
}
