/** The queues of all roles, and the subjects of single workers: how a job's message gets to a worker. */
import { jetstream } from '@nats-io/jetstream';
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { roles } from '../../../core/roles.ts';
import type { Role } from '../../../core/roles.ts';
import type { JournalReply } from '../../../core/wire/journal.ts';
import { jobStream, jobStreamSubjects, jobSubject, ownJobSubject, runJobsFilter } from '../../../core/wire/messages.ts';
import type { Timing } from '../../../core/wire/messages.ts';
import { identityText } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import { purgeJournal, readEntries } from '../journal/journal-entries.ts';
import { linkOf } from '../link.ts';
import type { Link } from '../link.ts';
import { ensureStreams, handedOut } from '../streams.ts';
import { factsOf, messageOf } from './job.ts';
import type { Job } from './job.ts';

const subjectOf = ({ role, jobId, queue, request }: Job): string => jobSubject(role, queue, request.runId, jobId);

export class JobQueue {
  readonly #nc: NatsConnection;
  readonly #js: JetStreamClient;
  readonly #link: Link;
  readonly #timing: Timing;
  #jsm: JetStreamManager;

  constructor(nc: NatsConnection, jsm: JetStreamManager, timing: Timing) {
    this.#nc = nc;
    this.#js = jetstream(nc);
    this.#link = linkOf(nc);
    this.#jsm = jsm;
    this.#timing = timing;
  }

  /** Puts the job into its queue. Resolves with the message's place there. */
  async publish(job: Job): Promise<number> {
    try {
      faultPoint('publish.before', factsOf(job));
      const { seq } = await this.#link.orLost(
        this.#js.publish(subjectOf(job), JSON.stringify(messageOf(job)), { retries: 2, timeout: 2_000 }),
      );
      faultPoint('publish.after', factsOf(job));
      return seq;
    } catch (error) {
      await this.#link.orLost(this.#declareAgain());
      throw error;
    }
  }

  /** The place of the job's message in its queue; undefined when none is there. */
  async placeOf(job: Job): Promise<number | undefined> {
    try {
      const question = this.#jsm.streams.getMessage(jobStream(job.role), { last_by_subj: subjectOf(job) });
      return (await this.#link.orLost(question))?.seq;
    } catch {
      await this.#link.orLost(this.#declareAgain()); // the stream itself may be lost; the new one is empty
      return undefined;
    }
  }

  /** Sends the job to one worker, past the queue. */
  sendTo(worker: WorkerIdentity, job: Job): void {
    faultPoint('publish.before', factsOf(job));
    this.#nc.publish(ownJobSubject(identityText(worker)), JSON.stringify(messageOf(job)));
    faultPoint('publish.after', factsOf(job));
  }

  /** Run and job, `run job`, of each message in the queues of a role. */
  async queued(role: Role): Promise<ReadonlySet<string>> {
    try {
      const { state } = await this.#link.orLost(
        this.#jsm.streams.info(jobStream(role), { subjects_filter: jobStreamSubjects(role) }),
      );
      return new Set(Object.keys(state.subjects ?? {}).map((subject) => subject.split('.').slice(-2).join(' ')));
    } catch {
      return new Set(); // each session finds out by itself
    }
  }

  /** The place up to which the queue has handed out every message. */
  handedOut(role: Role, queue: string): Promise<number> {
    return this.#link.orLost(handedOut(this.#jsm, role, queue));
  }

  /** Removes all jobs of the run. */
  async purge(runId: string): Promise<void> {
    for (const role of roles)
      await this.#link.orLost(
        // Where the stream itself was lost, the new one is empty.
        this.#jsm.streams.purge(jobStream(role), { filter: runJobsFilter(role, runId) }).catch(this.#declareAgain),
      );
  }

  /** Reads the entries of a rollout job's journal from this position on. */
  readJournal(
    { request: { runId }, jobId }: Job,
    secretOf: (claimant: WorkerIdentity) => string,
    from: number,
  ): Promise<JournalReply> {
    return this.#link.orLost(readEntries(this.#jsm.direct, { runId, jobId, secretOf }, from));
  }

  /** The job has its result: nobody reads its journal any more. */
  purgeJournal({ request, jobId }: Job): Promise<void> {
    return purgeJournal(this.#jsm, request.runId, jobId);
  }

  readonly #declareAgain = async (): Promise<void> => {
    this.#jsm = await ensureStreams(this.#nc, this.#timing);
  };
}
