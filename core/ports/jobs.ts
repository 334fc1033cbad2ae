/** Jobs as those see them who want them done: a request, its result, and how one waits for it. */
import type { MachineNeeds } from '../machine-needs.ts';
import type { Publication } from '../records/publications.ts';
import type { ResultRecord } from '../records/schema.ts';
import type { ScoringSettings, Stage, StageTypes } from '../wire/jobs/index.ts';
import type { Store } from './store.ts';

/** One job that a run wants done. Its id follows from the stage and the input. */
export interface JobRequest<S extends Stage> {
  readonly stage: S;
  readonly runId: string;
  readonly at: { readonly term: number; readonly iteration: number };
  readonly store: Store;
  /** The queue of the job's numeric profile, or `any` for a job that needs no engine: core/records/profile-ids.ts. */
  readonly profile: string;
  /** What its machine must have beside. Absent: nothing. */
  readonly needs?: MachineNeeds | undefined;
  readonly input: StageTypes[S]['input'];
  /** A part of a job that crashed its workers: it runs alone on its worker. */
  readonly quarantined?: boolean;
  /** The caller splits this job into parts when it crashes a worker. */
  readonly divisible?: boolean;
  /**
   * How the samples of a rollout job will be scored. It is no part of the input, because it does not change the
   * samples.
   */
  readonly scoring?: ScoringSettings;
  /**
   * What a rollout job loads as its weights. It is no part of the input, because every publication gives the same
   * samples.
   */
  readonly publication?: Publication;
  /** The rollout job whose samples a reward job scores. */
  readonly follows?: string;
  /** The text of the batch record that an update applies, which its worker then need not read. */
  readonly batch?: string;
  /** Nobody has asked for it before, as far as the caller knows: it need not be looked for. It may be wrong. */
  readonly isNew?: boolean;
}

/** The content of a job's result object. */
export interface JobResult<S extends Stage = Stage> {
  readonly jobId: string;
  readonly output: StageTypes[S]['output'];
  readonly timings: ResultRecord['timings'];
  /** Time at which its result was written. */
  readonly endedAt?: string;
  /** Name of the process that wrote it. */
  readonly by?: string;
}

/** How one activity waits for a job. */
export interface WaitOptions {
  /** Aborting ends this wait only. The job stays, and the next waiter joins it. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: Progress | undefined, queuedBecause: string | undefined) => void;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
  readonly note: string;
  readonly worker: string;
}
