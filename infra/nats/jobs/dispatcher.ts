/**
 * The control side of dispatch: publishes idempotent jobs, answers claims, and waits for result objects. A second call
 * for the same job is safe: it returns the existing result or joins the running job.
 *
 * - wait-session.ts waits for one job; job-wait.ts and sending.ts are its rules;
 * - job-queue.ts carries messages; results.ts reads what workers wrote, and proves who wrote it;
 * - claimants.ts says which worker may have a job; trainers.ts keeps leases, turns and weights;
 * - run-reach.ts says from how far workers take part in an iteration;
 * - workers.ts knows who is present; cancelled-runs.ts, which runs may start nothing.
 */
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { needsText } from '../../../core/machine-needs.ts';
import { reachLimits } from '../../../core/reach.ts';
import { queueText } from '../../../core/records/profile-ids.ts';
import { errorToJson } from '../../../core/errors.ts';
import type { ResultRecord, Writer } from '../../../core/records/schema.ts';
import type { Stage, StageTypes } from '../../../core/wire/jobs/index.ts';
import { jobConsumer, wireVersion, workerGoneSubject } from '../../../core/wire/messages.ts';
import type { Presence, Timing } from '../../../core/wire/messages.ts';
import type { NewWeights } from '../../../core/wire/weights.ts';
import { shownName } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import { AskedJobs } from './asked-jobs.ts';
import { CancelledRuns } from './cancelled-runs.ts';
import { Claimants } from './claimants.ts';
import { declareStreams } from '../declarations.ts';
import { jobOf, nearJob } from './job.ts';
import type { Job } from './job.ts';
import type { JobRequest, JobResult, WaitOptions } from '../../../core/ports/jobs.ts';
import { JobQueue } from './job-queue.ts';
import type { JobUse } from './job-use.ts';
import { KnownNeeds } from './known-needs.ts';
import { linkOf } from '../link.ts';
import type { Link } from '../link.ts';
import { forgetWorker, listWorkers } from './presence.ts';
import { Results } from './results.ts';
import type { ResultOfJob } from './results.ts';
import { RunReach } from './run-reach.ts';
import type { ReachChanged } from './run-reach.ts';
import { Trainers } from './trainers.ts';
import { WaitSession, atRest } from './wait-session.ts';
import type { NoRoom, SessionDesk } from './wait-session.ts';
import { Workers } from './workers.ts';

export { jobIdOf } from './job.ts';
export type { NoRoom } from './wait-session.ts';

/** Called for a run when the process of a worker that held one of its jobs has ended, with a sentence for its log. */
export type WorkerEnded = (runId: string, text: string) => void;

export interface DispatcherOptions {
  /** Name of this control process in records. */
  readonly process: string;
  /** Instance of this machine. */
  readonly instance: string;
  readonly timing: Timing;
  /** Called when a job could not be published. */
  readonly noRoom?: NoRoom;
  readonly ended?: WorkerEnded;
  /** A worker's process has announced itself. */
  readonly came?: (entry: Presence) => void;
  /** Notes a use for the bills of machines. */
  readonly used?: (use: RunUse) => void;
  readonly reachChanged?: ReachChanged;
}

export interface RunUse extends JobUse {
  readonly run: string;
  readonly iteration: number;
}

const nameOf = ({ request, jobId }: Job) => `${request.runId} ${jobId}`;

export class Dispatcher {
  readonly #nc: NatsConnection;
  readonly #link: Link;
  readonly #timing: Timing;
  readonly #instance: string;
  readonly #ended: WorkerEnded;
  readonly #workers: Workers;
  readonly #trainers: Trainers;
  readonly #queue: JobQueue;
  readonly #results: Results;
  readonly #cancelled: CancelledRuns;
  readonly #asked = new AskedJobs();
  readonly #needs: KnownNeeds;
  readonly #reach: RunReach;
  readonly #desk: SessionDesk;
  /** The jobs that are waited for, by `nameOf`. */
  readonly #sessions = new Map<string, WaitSession>();
  /** The timer that runs while jobs wait. */
  #watch: NodeJS.Timeout | undefined;

  private constructor(nc: NatsConnection, queue: JobQueue, needs: KnownNeeds, options: DispatcherOptions) {
    const { process, instance, timing, noRoom = async () => undefined, ended, came, used } = options;
    this.#nc = nc;
    this.#link = linkOf(nc);
    this.#timing = timing;
    this.#instance = instance;
    this.#ended = ended ?? (() => {});
    this.#reach = new RunReach(options.reachChanged ?? (() => {}));
    this.#workers = new Workers(nc, instance, timing, (entry, before) => {
      this.#needs.tell();
      this.#replaced(entry, before);
      came?.(entry);
    });
    this.#trainers = new Trainers(nc, this.#workers);
    this.#queue = queue;
    this.#needs = needs;
    this.#results = new Results(process);
    this.#cancelled = new CancelledRuns(nc, `${instance}.${process}`, (runId) => this.#leave(runId));
    this.#desk = {
      nc,
      timing,
      instance,
      queue,
      claimants: new Claimants(nc, this.#workers, this.#trainers),
      noRoom,
      whyUnheld: (job) => this.#whyUnheld(job),
      used: ({ request: { runId, at } }, use) => used?.({ ...use, run: runId, iteration: at.iteration }),
      over: (job) => this.#over(job),
    };
    this.#link.onBack(() => {
      this.#workers.reconnected();
      this.#needs.tell();
      this.#sessions.forEach((session) => session.reconnected());
    });
  }

  static async open(nc: NatsConnection, options: DispatcherOptions): Promise<Dispatcher> {
    const needs = new KnownNeeds(nc);
    await declareStreams(nc, options.timing, () => needs.all);
    const queue = new JobQueue(nc, await jetstreamManager(nc), options.timing);
    const dispatcher = new Dispatcher(nc, queue, needs, options);
    dispatcher.#workers.seed(await listWorkers(nc));
    return dispatcher;
  }

  /** Throws TerminalError or PauseError, as the job's failure requires, or the signal's reason. */
  async run<S extends Stage>(request: JobRequest<S>, options: WaitOptions): Promise<JobResult<S>> {
    if (this.#cancelled.has(request.runId)) throw atRest(request.runId);
    const job = jobOf(request);
    if (request.needs !== undefined) this.#needs.note(request.needs);
    const isFirst = this.#asked.note(job);
    const result = await this.#results.of(job);
    // The session of another activity reads the result anyway, and of a new job there is none.
    const isLookedFor = !this.#sessions.has(nameOf(job)) && !(isFirst && request.isNew === true);
    const done = isLookedFor ? await result.read() : undefined;
    if (done !== undefined) return done;
    const facts = { stage: request.stage, iteration: request.at.iteration, runId: request.runId };
    faultPoint('wait.begin', facts);
    const onProgress: WaitOptions['onProgress'] = (progress, queued) => {
      options.onProgress?.(progress, queued);
      if (progress !== undefined) faultPoint('wait.progress', facts);
    };
    const withinMs = this.#withinMs(job);
    const written = (await this.#session(job, result, withinMs).join({ ...options, onProgress })) as JobResult<S>;
    this.#reach.ended(job, written);
    if (request.stage === 'rollout') void this.#queue.purgeJournal(job);
    faultPoint('wait.end', facts);
    return written;
  }

  /** Creates the job's result object without a worker, for a job that ran in parts. An existing result object wins. */
  async settle<S extends Stage>(
    request: JobRequest<S>,
    output: StageTypes[S]['output'],
    timings: ResultRecord['timings'],
    writer: Writer,
  ): Promise<JobResult<S>> {
    return (await this.#results.of(jobOf(request))).settle(output, timings, writer);
  }

  /** The longest round trip of a worker that should do the job; near workers learn that there are jobs for them. */
  #withinMs(job: Job): number | undefined {
    const { role, queue, request } = job;
    const withinMs = this.#reach.limitFor(job, () => this.#workers.roundTrips(role, queue, request.needs));
    if (withinMs === undefined) return undefined;
    // Those of the next trial, too: it measures nothing while nobody reads its queue.
    for (const limit of reachLimits) this.#needs.note(nearJob(job, limit).request.needs ?? {});
    if (!this.#desk.claimants.areThere(nearJob(job, withinMs))) this.#needs.tell();
    return withinMs;
  }

  /** Activities that wait for the same job share a session, so that a claim gets one answer. */
  #session(job: Job, result: ResultOfJob, withinMs: number | undefined): WaitSession {
    const known = this.#sessions.get(nameOf(job));
    if (known !== undefined) return known;
    const session = new WaitSession(job, result, this.#desk, withinMs);
    this.#sessions.set(nameOf(job), session);
    this.#watch ??= setInterval(() => void this.#lookAtWaiting(), this.#timing.watchdogMs);
    session.start();
    return session;
  }

  #over(job: Job): void {
    this.#sessions.delete(nameOf(job));
    if (this.#sessions.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  /** The jobs that no worker holds. */
  #waiting(): WaitSession[] {
    return [...this.#sessions.values()].filter(({ isHeld }) => !isHeld);
  }

  /** The watchdog of all sessions: one question for each queue, however many jobs wait. */
  async #lookAtWaiting(): Promise<void> {
    const waiting = this.#waiting();
    // A worker that can do them may not have heard of their needs.
    if (waiting.some(({ queued }) => queued.request.needs !== undefined)) this.#needs.tell();
    for (const role of new Set(waiting.map(({ job }) => job.role))) {
      const queued = await this.#queue.queued(role);
      for (const session of waiting) if (session.job.role === role) session.look(queued.has(nameOf(session.job)));
    }
  }

  /** Why no worker holds a job: the workers are busy with other runs, or no worker can run it. */
  #whyUnheld({ role, request: { profile, runId, needs } }: Job): string {
    const others = [...this.#sessions.values()].filter(
      (session) => session.isHeld && session.runId !== runId && session.job.role === role,
    );
    const runs = [...new Set(others.map((session) => session.runId))];
    const lacking = this.#workers.lacking(role);
    const free = `no free worker with the role ${role}${queueText(profile)}${needsText(needs)} is available`;
    const why =
      runs.length === 0 ? free : `waiting for a ${role} slot: the workers are busy with run ${runs.join(', ')}`;
    return [why, ...lacking].join('; ');
  }

  /** The workers that are present. Rejects with `NatsLost` without a connection, because then nobody is heard. */
  async workers(): Promise<Presence[]> {
    await this.#link.orLost(this.#nc.flush());
    return this.#workers.list();
  }

  #replaced(entry: Presence, before: Presence | undefined): void {
    if (before !== undefined)
      this.#tellRuns(before, `ended (${entry.predecessorEnded ?? 'vanished'}) and was started again`);
    for (const session of [...this.#sessions.values()]) session.replaced(entry);
  }

  /** This process of a worker is gone: its jobs go to others at once, and it is no longer listed. */
  lost(gone: WorkerIdentity): void {
    const entry = this.#workers.forget(gone);
    if (entry !== undefined) this.#tellRuns(entry, 'is gone: its connection closed');
    for (const session of [...this.#sessions.values()]) session.lost(gone);
    this.#nc.publish(workerGoneSubject, JSON.stringify({ v: wireVersion, ...gone }));
    void forgetWorker(this.#nc, gone);
    void this.#askWhatWasHandedOut();
  }

  /** The worker that is gone may have got jobs from a queue that it had not claimed yet. */
  async #askWhatWasHandedOut(): Promise<void> {
    const byQueue = new Map<string, WaitSession[]>();
    for (const session of this.#waiting()) {
      const { role, queue } = session.queued;
      const name = jobConsumer(role, queue);
      byQueue.set(name, [...(byQueue.get(name) ?? []), session]);
    }
    for (const [name, sessions] of byQueue) {
      const [{ queued: job }] = sessions as [WaitSession];
      try {
        const place = await this.#queue.handedOut(job.role, job.queue);
        for (const session of sessions) session.handedOut(place);
      } catch (error) {
        console.error(`the queue ${name} does not say what it has handed out: ${errorToJson(error).message}`);
      }
    }
  }

  /** Tells the runs that a worker worked for. */
  #tellRuns(worker: Presence, what: string): void {
    const concerned = [...this.#sessions.values()].filter(
      ({ job, runId }) => worker.jobs.includes(job.jobId) || worker.lease === runId,
    );
    for (const runId of new Set(concerned.map(({ runId }) => runId)))
      this.#ended(runId, `worker ${shownName(worker, this.#instance)} ${what}`);
  }

  /** Can processes that sample get the run's weights from its trainer? */
  servesWeights(runId: string): boolean {
    return this.#workers.trainerOf(runId) !== undefined;
  }

  /** The weights of a committed update, which its trainer has in memory, go to the processes that sample. */
  announceWeights(committed: Omit<NewWeights, 'v' | 'order'>): void {
    this.#trainers.announceWeights(committed);
  }

  /** The run pauses: its waiters are rejected, and its trainer and slots become free for other runs. */
  releaseLease(runId: string): void {
    this.#leave(runId);
    this.#trainers.release(runId);
  }

  /** Does another run wait for the trainer of this one? */
  isWanted(runId: string): boolean {
    return this.#workers.isWanted(runId);
  }

  /** Resolves once another run waits for the trainer of this one: true. Or once the signal is aborted: false. */
  untilWanted(runId: string, signal: AbortSignal): Promise<boolean> {
    return this.#workers.untilWanted(runId, signal);
  }

  /** The run goes on, and a run that waits gets its trainer first. */
  endTurn(runId: string): void {
    this.#trainers.endTurn(runId);
  }

  /**
   * The run was cancelled: its jobs end now, whether they are queued, claimed or running. No job of the run starts
   * until `runResumed`.
   */
  async cancelJobs(runId: string): Promise<void> {
    this.#cancelled.add(runId);
    this.#leave(runId);
    await this.#link.orLost(this.#nc.flush()); // when this returns, the workers have got the message
    await this.#queue.purge(runId);
  }

  #leave(runId: string): void {
    this.#reach.leave(runId);
    for (const session of [...this.#sessions.values()]) session.leave(runId);
  }

  /** The run continues, perhaps after it was cancelled: its jobs may start again. */
  runResumed(runId: string): void {
    this.#cancelled.delete(runId);
  }
}
