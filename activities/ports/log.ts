/** The log of a run: reading where it ends, and appending to it. */
import type { z } from 'zod';
import type { PauseError } from '../../core/errors.ts';
import type { BatchRecord, StatusEntry, TermRecord } from '../../core/records/schema.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Stored } from '../../log/objects/records.ts';
import type { Sweep } from '../../log/retention/sweep.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';
import type { StatusChange } from '../../log/run/status.ts';
import type { StandbyStart, WantedTerm } from '../../log/run/terms.ts';

export interface LogPorts {
  readonly openLog: (store: Store, runId: string) => RunLog;
  /** A record that is missing although later ones exist, if any. */
  readonly findHole: (log: RunLog, head: Head | undefined) => Promise<PauseError | undefined>;
  /** The earlier batch that the head's term applies next, if any. */
  readonly batchToAdopt: (log: RunLog, head: Head) => Promise<Stored<BatchRecord> | undefined>;
  /** Throws FencedError when another process opened it, InvalidInputError for a position that is not committed. */
  readonly openNextTerm: (log: RunLog, wanted: WantedTerm) => Promise<Stored<TermRecord>>;
  /** The state of a standby, which the result with this key names. */
  readonly standbyStart: (log: RunLog, result: string, process: string) => Promise<StandbyStart>;
  /**
   * Creates a record, or adopts an existing one that `agrees` accepts. Throws FencedError when another process has
   * decided otherwise.
   */
  readonly decide: <S extends z.ZodType>(
    store: Store,
    key: string,
    schema: S,
    record: z.infer<S>,
    agrees: (existing: z.infer<S>) => boolean,
  ) => Promise<Stored<z.infer<S>> & { readonly adopted: boolean }>;
  /** The text that the store has of a record; undefined when this version would write it otherwise. */
  readonly recordText: (stored: Pick<Stored<object>, 'digest' | 'record'>) => string | undefined;
  /** Called after each commit of an iteration and each validation; it must not fail or delay the run. */
  readonly committed: (log: RunLog, position: number) => void;
  /** Throws TerminalError `OutOfDate` when the change names another desired state than the newest. */
  readonly appendStatus: (log: RunLog, change: StatusChange, at: Date, givenUp?: () => boolean) => Promise<StatusEntry>;
  /** How many times the run was paused for this reason with the same `where`. */
  readonly pausesFor: (log: RunLog, code: string, where: string) => Promise<number>;
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
}
