/** The trainers of runs, which keep a run's state and its newest weights: their leases, turns and weights. */
import type { NatsConnection } from '@nats-io/nats-core';
import type { Digest } from '../../../core/ids.ts';
import { queueOf } from '../../../core/records/profile-ids.ts';
import type { StageTypes } from '../../../core/wire/jobs/index.ts';
import { leaseSubject, leaseTakenSubject, wireVersion } from '../../../core/wire/messages.ts';
import { newWeightsSubject } from '../../../core/wire/weights.ts';
import type { NewWeights } from '../../../core/wire/weights.ts';
import { identityText } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import { trainerJobOf } from './job.ts';
import type { Job } from './job.ts';
import { WeightsOrders } from './weights-orders.ts';
import type { Workers } from './workers.ts';

export class Trainers {
  readonly #nc: NatsConnection;
  readonly #workers: Workers;
  readonly #orders = new WeightsOrders();

  constructor(nc: NatsConnection, workers: Workers) {
    this.#nc = nc;
    this.#workers = workers;
  }

  /** A trainer starts a job: others that wait for the run, or have it, learn it. A lost message costs only memory. */
  claimed(job: Job, claimant: WorkerIdentity): void {
    const { runId, components, standby } = trainerJobOf(job);
    if (!this.#workers.takesLease(trainerJobOf(job), claimant)) return;
    const by = identityText(claimant);
    this.#tell(leaseTakenSubject, { runId, by, components, ...(standby && { standsBy: true }) });
  }

  /** The run pauses or has ended: its trainer becomes free for other runs. */
  release(runId: string): void {
    this.#orders.forget(runId);
    this.#tell(leaseSubject, { runId });
  }

  /**
   * The run goes on, and a run that waits gets its trainer first. When the message is lost, it keeps the trainer for
   * another turn.
   */
  endTurn(runId: string): void {
    this.#tell(leaseSubject, { runId, turn: true });
  }

  /** The processes that one asks for the weights of its job. */
  holdersFor({ request: { stage, runId, input, publication } }: Job, claimant: WorkerIdentity): string[] {
    if (stage !== 'rollout') return [];
    const { weights } = input as StageTypes['rollout']['input'];
    const digest = publication?.digest ?? weights;
    return this.#orders.holdersFor(runId, digest, this.#workers.servesAt(claimant), this.#workers.trainerOf(runId));
  }

  /**
   * The weights of a committed update, which its trainer has in memory: the processes that have the ones before get
   * these while they have nothing to do. When the message is lost, they get them with their next job.
   */
  announceWeights(committed: Omit<NewWeights, 'v' | 'order'>): void {
    const { runId, weights, publication, profile } = committed;
    const trainer = this.#workers.trainerOf(runId);
    if (trainer === undefined) return;
    const digest = (publication?.digest ?? weights) as Digest;
    const order = [...this.#orders.begin(runId, digest, [trainer, ...this.#workers.samplers(queueOf(profile))])];
    this.#nc.publish(newWeightsSubject, JSON.stringify({ ...committed, v: 1, order } satisfies NewWeights));
  }

  #tell(subject: string, message: object): void {
    this.#nc.publish(subject, JSON.stringify({ v: wireVersion, ...message }));
  }
}
