/** What the jobs of an iteration have made, from the stage `reward` to the records. */
import type { Digest } from '../core/ids.ts';
import type { ResultRecord } from '../core/records/schema.ts';
import type { Stage } from '../core/wire/jobs/index.ts';
import type { JobResult } from '../core/ports/jobs.ts';
import { spanOf, type Span } from './spans.ts';

/** A job that has ended, as the records of its iteration name it. */
export interface EndedJob {
  readonly jobId: string;
  readonly timings: ResultRecord['timings'];
  /** The time in which it ran. Undefined when its result does not say so. */
  readonly span: Span | undefined;
}

/** The results of one rollout job and its reward job. */
export interface ScoredJobs {
  readonly trajectories: Digest;
  readonly scores: Digest;
  readonly samples: number;
  readonly responseTokens: number;
  /** Samples without a score. */
  readonly failed: number;
  readonly rollout: EndedJob;
  readonly reward: EndedJob;
}

export interface ScoredRollout extends ScoredJobs {
  /** 0 but for draws that dynamic sampling added. */
  readonly wave: number;
  /** Greedy responses to the same prompts, where the estimator compares with them. */
  readonly baseline?: ScoredJobs;
}

/** The jobs of a scored rollout, those of the greedy responses last. */
export const jobsOf = ({ baseline, ...own }: ScoredRollout): readonly ScoredJobs[] =>
  baseline === undefined ? [own] : [own, baseline];

export function endedJob<S extends Stage>(stage: S, result: JobResult<S>): EndedJob {
  return { jobId: result.jobId, timings: result.timings, span: spanOf(stage, result) };
}
