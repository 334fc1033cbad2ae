/** What a stage of the engine knows of its job. */
import type { JobId, RunId } from '../../../core/ids.ts';
import type { Publication } from '../../../core/records/publications.ts';

/** Which job this is, and how it reports its progress. */
export interface JobContext {
  readonly runId: RunId;
  readonly jobId: JobId;
  readonly at: { readonly term: number; readonly iteration: number };
  readonly store: string;
  /** Reports committed work. Throws PreemptedError in a trainer's stage whose run was cancelled. */
  readonly progress: (done: number, total: number, note: string) => void;
  /** Aborted, with a PreemptedError, when the result is no longer needed. */
  readonly signal: AbortSignal;
  /** Throws PreemptedError when the result is no longer needed. */
  readonly throwIfCancelled: () => void;
  readonly say: (text: string) => void;
  /** What to load as the weights of a rollout job; undefined: the fp32 values. */
  readonly publication: Publication | undefined;
  /** The text of the batch record that an update applies, when its sender had it. */
  readonly batch: string | undefined;
  /** Processes that have the job's weights, or get them before this one. */
  readonly holders: readonly string[];
  /** Reports samples that have ended before their job. */
  readonly ended: (samples: readonly EndedSample[]) => void;
  /** Records an operational metric of the job. */
  readonly count: (name: string, value: number) => void;
  readonly journal: JournalPorts & {
    /** Journal entries that earlier workers wrote for this job. */
    readonly entries: readonly string[];
    /** Calls `listener` when entries were lost, until the returned function is called. */
    readonly onLost: (listener: () => void) => () => void;
  };
}

/** A whole response to a draw. */
export interface EndedSample {
  readonly draw: number;
  readonly row: number;
  /** The sample's number among the responses to its draw. */
  readonly sample: number;
  readonly tokens: Int32Array;
}

/** How the samples of a job get into the journal. */
export interface JournalPorts {
  readonly incarnation: string;
  readonly tickMs: number;
  /** ms of a monotonic clock. */
  readonly now: () => number;
  readonly publish: (text: string, tokens: number) => void;
}
