/** What users of a run hear while it works. */
import type { LogLine } from '../../core/wire/messages.ts';

export interface TellPorts {
  /** Writes a line of the run's log. */
  readonly say: (runId: string, level: LogLine['level'], text: string) => void;
  /** Publishes the progress of a running stage for live views. */
  readonly live: (runId: string, note: LiveNote) => void;
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
