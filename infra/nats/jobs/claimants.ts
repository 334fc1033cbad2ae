/** The workers that may have a job: whom it is sent to, who may claim it, and what others learn when one starts it. */
import type { NatsConnection } from '@nats-io/nats-core';
import { samplesTakenSubject } from '../../../core/wire/ended-samples.ts';
import { wireVersion } from '../../../core/wire/messages.ts';
import type { Timing } from '../../../core/wire/messages.ts';
import { identityText } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity, WorkerPlace } from '../../../core/wire/worker-identity.ts';
import type { Choice } from './choices.ts';
import { trainerJobOf } from './job.ts';
import type { Job } from './job.ts';
import type { Trainers } from './trainers.ts';
import type { Workers } from './workers.ts';

export class Claimants {
  readonly #nc: NatsConnection;
  readonly #workers: Workers;
  readonly #trainers: Trainers;

  constructor(nc: NatsConnection, workers: Workers, trainers: Trainers) {
    this.#nc = nc;
    this.#workers = workers;
    this.#trainers = trainers;
  }

  /**
   * The worker that has what the job needs, of those that have not declined it; undefined: any worker of its queue may
   * take it.
   */
  choose(job: Job, declined: ReadonlySet<string>): Choice | undefined {
    const { needs } = job.request;
    if (job.role === 'trainer') return this.#workers.trainerFor(trainerJobOf(job), declined, needs);
    const { follows } = job.request;
    return follows === undefined ? undefined : this.#workers.scoringAhead(follows, declined);
  }

  /** The job was sent to this worker: for a while no other run is offered the same trainer. */
  reserve(worker: WorkerIdentity, { role }: Job): void {
    if (role === 'trainer') this.#workers.reserve(worker);
  }

  /** Does this process take jobs, as far as is known? */
  isPresent(worker: WorkerIdentity): boolean {
    return this.#workers.isPresent(worker);
  }

  /** May this worker claim the job? */
  mayClaim(job: Job, claimant: WorkerPlace): boolean {
    const { needs } = job.request;
    if (needs !== undefined && !this.#workers.meets(needs, claimant)) return false;
    return job.role !== 'trainer' || this.#workers.mayTrain(trainerJobOf(job), claimant);
  }

  /** Is there a worker that takes jobs from this job's queue? */
  areThere({ role, queue, request: { needs } }: Job): boolean {
    return this.#workers.roundTrips(role, queue, needs).length > 0;
  }

  /** How patient one is with this worker. */
  timingOf(place: WorkerPlace): Timing {
    return this.#workers.timingOf(place);
  }

  /** Is there a healthy worker, other than these, that could run the job? */
  others({ role, queue }: Job, than: ReadonlySet<string>): boolean {
    return this.#workers.others(role, queue, than);
  }

  /** Tells others that a worker starts the job. When a message is lost, they only do or keep more than they need. */
  claimed(job: Job, claimant: WorkerIdentity): void {
    const { runId, follows } = job.request;
    if (job.role === 'trainer') return this.#trainers.claimed(job, claimant);
    if (follows === undefined) return;
    const other = this.#workers.scoringAhead(follows)?.to;
    if (other === undefined || identityText(other) === identityText(claimant)) return;
    const taken = { v: wireVersion, runId, jobId: follows };
    this.#nc.publish(samplesTakenSubject(identityText(other)), JSON.stringify(taken));
  }

  /** The processes that the claimant asks for the weights of its job. */
  holdersFor(job: Job, claimant: WorkerIdentity): string[] {
    return this.#trainers.holdersFor(job, claimant);
  }

  /** The worker that scores the samples of a rollout job ahead. */
  scorerOf({ request: { stage, scoring, needs }, jobId }: Job): string | undefined {
    if (stage !== 'rollout' || scoring === undefined) return undefined;
    const scorer = this.#workers.scorerFor(jobId, needs?.within_ms);
    return scorer && identityText(scorer);
  }
}
