/** A request with what follows from it: its id, its role and its message. */
import { makeJobId } from '../../../core/ids.ts';
import { queueWithNeeds } from '../../../core/machine-needs.ts';
import type { JobRequest } from '../../../core/ports/jobs.ts';
import type { Role } from '../../../core/roles.ts';
import { roleOf, trainerShareOf } from '../../../core/wire/jobs/index.ts';
import type { Stage, StageTypes } from '../../../core/wire/jobs/index.ts';
import { mostRecordChars, wireVersion } from '../../../core/wire/messages.ts';
import type { JobMessage } from '../../../core/wire/messages.ts';
import { digestOf } from '../../../log/objects/digest.ts';
import type { TrainerJob } from './choices.ts';

export interface Job<S extends Stage = Stage> {
  readonly request: JobRequest<S>;
  readonly jobId: string;
  readonly role: Role;
  /** The queue of those workers that can do it. */
  readonly queue: string;
}

export function jobIdOf<S extends Stage>(stage: S, input: StageTypes[S]['input']): string {
  return makeJobId(stage, digestOf(input));
}

export function jobOf<S extends Stage>(request: JobRequest<S>): Job<S> {
  const { stage, input, profile, needs } = request;
  return { request, jobId: jobIdOf(stage, input), role: roleOf(stage), queue: queueWithNeeds(profile, needs) };
}

/** The same job in the queue of those workers that are within this round trip. */
export function nearJob(job: Job, withinMs: number): Job {
  const { profile, needs } = job.request;
  const near = { ...needs, within_ms: Math.min(withinMs, needs?.within_ms ?? withinMs) };
  return { ...job, request: { ...job.request, needs: near }, queue: queueWithNeeds(profile, near) };
}

/** What fault points tell of a job. */
export const factsOf = ({ request, jobId }: Job) => ({
  stage: request.stage,
  jobId,
  iteration: request.at.iteration,
  runId: request.runId,
});

/** The message with which a worker gets the job. */
export function messageOf({ request, jobId }: Job): JobMessage {
  return {
    v: wireVersion,
    jobId,
    stage: request.stage,
    runId: request.runId,
    at: request.at,
    store: request.store.url,
    input: { ...request.input },
    ...(request.scoring !== undefined && { scoring: { ...request.scoring } }),
    ...(request.publication !== undefined && { publication: request.publication }),
    ...(request.follows !== undefined && { follows: request.follows }),
    ...(request.batch !== undefined && request.batch.length <= mostRecordChars && { batch: request.batch }),
    // A term after the first may ask again for what an abandoned one has done: its worker looks for the result.
    ...(request.isNew === true && request.at.term === 1 && { isNew: true as const }),
  };
}

/** What the choice of a trainer depends on. */
export function trainerJobOf({ request: { runId, input }, queue }: Job): TrainerJob {
  return { runId, queue, standby: false, ...trainerShareOf(input) };
}
