/**
 * The control side of dispatch: publishes idempotent jobs, answers claims, and waits for result objects. A second call
 * for the same job is safe: it returns the existing result or joins the running job.
 */
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { queueOf, queueText } from '../../core/records/profile-ids.ts';
import { errorToJson } from '../../core/errors.ts';
import { makeJobId } from '../../core/ids.ts';
import type { Digest } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import type { Publication } from '../../core/records/publications.ts';
import { recordFormat, resultRecord } from '../../core/records/schema.ts';
import type { ResultRecord, Writer } from '../../core/records/schema.ts';
import type { Store } from '../../core/ports/store.ts';
import { roles } from '../../core/roles.ts';
import type { Role } from '../../core/roles.ts';
import { roleOfStage } from '../../core/wire/jobs.ts';
import type { ScoringSettings, Stage, StageTypes, Trains, UpdateInput } from '../../core/wire/jobs.ts';
import { samplesTakenSubject } from '../../core/wire/ended-samples.ts';
import {
  jobConsumer,
  jobStream,
  jobStreamSubjects,
  jobSubject,
  leaseSubject,
  leaseTakenSubject,
  ownJobSubject,
  runJobsFilter,
  wireVersion,
  workerGoneSubject,
} from '../../core/wire/messages.ts';
import type { JobMessage, Presence, Timing } from '../../core/wire/messages.ts';
import { newWeightsSubject } from '../../core/wire/weights.ts';
import type { NewWeights } from '../../core/wire/weights.ts';
import { identityText, shownName } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../core/wire/worker-identity.ts';
import { faultPoint } from '../faults/index.ts';
import { digestOf } from '../store/digest.ts';
import { claimKeyOf } from '../store/claim-key.ts';
import { decide, readRecord } from '../store/records.ts';
import { claimSecret, proven, requireProof, weightsSecret } from '../store/result-proof.ts';
import { CancelledRuns } from './cancelled-runs.ts';
import type { Choice, TrainerJob } from './choices.ts';
import { declareStreams } from './declarations.ts';
import { purgeJournal, readEntries } from './journal-entries.ts';
import type { JobUse } from './job-use.ts';
import { linkOf } from './link.ts';
import type { Link } from './link.ts';
import { forgetWorker, listWorkers } from './presence.ts';
import { ensureStreams, handedOut } from './streams.ts';
import { WaitSession, atRest } from './wait-session.ts';
import type { JobResult, NoRoom, WaitOptions } from './wait-session.ts';
import { WeightsOrders } from './weights-orders.ts';
import { Workers } from './workers.ts';

export type { JobResult, NoRoom, WaitOptions } from './wait-session.ts';

/** One job that a run wants done. Its id follows from the stage and the input. */
export interface JobRequest<S extends Stage> {
  readonly stage: S;
  readonly runId: string;
  readonly at: { readonly term: number; readonly iteration: number };
  readonly store: Store;
  /** The queue of the job's numeric profile, or `any` for a job that needs no engine: core/records/profile-ids.ts. */
  readonly profile: string;
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
}

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
}

export interface RunUse extends JobUse {
  readonly run: string;
  readonly iteration: number;
}

export function jobIdOf<S extends Stage>(stage: S, input: StageTypes[S]['input']): string {
  return makeJobId(stage, digestOf(input));
}

export class Dispatcher {
  readonly #nc: NatsConnection;
  readonly #js: JetStreamClient;
  readonly #timing: Timing;
  readonly #sessions = new Map<string, WaitSession>();
  readonly #workers: Workers;
  readonly #weights = new WeightsOrders();
  readonly #link: Link;
  readonly #noRoom: NoRoom;
  readonly #ended: WorkerEnded;
  readonly #used: (use: RunUse) => void;
  readonly #cancelled: CancelledRuns;
  readonly #process: string;
  readonly #instance: string;
  /** Keys of claims, by place of the store. */
  readonly #claimKeys = new Map<string, Promise<string>>();
  #jsm: JetStreamManager;
  /** The timer that runs while jobs wait. */
  #watch: NodeJS.Timeout | undefined;

  private constructor(
    nc: NatsConnection,
    jsm: JetStreamManager,
    { process, instance, timing, noRoom, ended, came, used }: DispatcherOptions,
  ) {
    this.#nc = nc;
    this.#process = process;
    this.#instance = instance;
    this.#ended = ended ?? (() => {});
    this.#used = used ?? (() => {});
    this.#noRoom = noRoom ?? (async () => undefined);
    this.#js = jetstream(nc);
    this.#jsm = jsm;
    this.#timing = timing;
    this.#workers = new Workers(nc, instance, timing, (entry, before) => {
      this.#replaced(entry, before);
      came?.(entry);
    });
    this.#link = linkOf(nc);
    this.#cancelled = new CancelledRuns(nc, `${instance}.${process}`, (runId) => this.#leave(runId));
    this.#link.onBack(() => {
      this.#workers.reconnected();
      this.#sessions.forEach((session) => session.reconnected());
    });
  }

  static async open(nc: NatsConnection, options: DispatcherOptions): Promise<Dispatcher> {
    await declareStreams(nc, options.timing);
    const dispatcher = new Dispatcher(nc, await jetstreamManager(nc), options);
    dispatcher.#workers.seed(await listWorkers(nc));
    return dispatcher;
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
    const waiting = [...this.#sessions.values()].filter(({ isHeld }) => !isHeld);
    const queues = new Map(waiting.map(({ queue }) => [jobConsumer(queue.role, queue.profile), queue]));
    for (const [name, { role, profile }] of queues) {
      try {
        const place = await this.#link.orLost(handedOut(this.#jsm, role, profile));
        for (const session of waiting)
          if (session.queue.role === role && session.queue.profile === profile) session.handedOut(place);
      } catch (error) {
        console.error(`the queue ${name} does not say what it has handed out: ${errorToJson(error).message}`);
      }
    }
  }

  /** The workers that are present. Rejects with `NatsLost` without a connection, because then nobody is heard. */
  async workers(): Promise<Presence[]> {
    await this.#link.orLost(this.#nc.flush());
    return this.#workers.list();
  }

  /** Tells the runs that a worker worked for. */
  #tellRuns(worker: Presence, what: string): void {
    const concerned = [...this.#sessions.values()].filter(
      ({ jobId, runId }) => worker.jobs.includes(jobId) || worker.lease === runId,
    );
    for (const runId of new Set(concerned.map(({ runId }) => runId)))
      this.#ended(runId, `worker ${shownName(worker, this.#instance)} ${what}`);
  }

  /** Throws TerminalError or PauseError, as the job's failure requires, or the signal's reason. */
  async run<S extends Stage>(request: JobRequest<S>, options: WaitOptions): Promise<JobResult<S>> {
    if (this.#cancelled.has(request.runId)) throw atRest(request.runId);
    const jobId = jobIdOf(request.stage, request.input);
    const key = await this.#claimKey(request.store);
    const done = await this.#result(request, jobId, key);
    if (done !== undefined) return done;
    const facts = { stage: request.stage, iteration: request.at.iteration, runId: request.runId };
    faultPoint('wait.begin', facts);
    const onProgress: WaitOptions['onProgress'] = (progress, queued) => {
      options.onProgress?.(progress, queued);
      if (progress !== undefined) faultPoint('wait.progress', facts);
    };
    const result = (await this.#session(request, jobId, key).join({ ...options, onProgress })) as JobResult<S>;
    if (request.stage === 'rollout') void purgeJournal(this.#jsm, request.runId, jobId);
    faultPoint('wait.end', facts);
    return result;
  }

  /** Activities that wait for the same job share a session, so that a claim gets one answer. */
  #session<S extends Stage>(request: JobRequest<S>, jobId: string, key: string): WaitSession {
    const name = `${request.runId} ${jobId}`;
    const known = this.#sessions.get(name);
    if (known !== undefined) return known;
    const role = roleOfStage[request.stage];
    const secretOf = (claimant: WorkerIdentity) => claimSecret(key, request.runId, jobId, identityText(claimant));
    const session = new WaitSession({
      runId: request.runId,
      jobId,
      stage: request.stage,
      profile: request.profile,
      iteration: request.at.iteration,
      whyUnheld: () => this.#whyUnheld(role, request.profile, request.runId),
      nc: this.#nc,
      nameOf: (place) => shownName(place, this.#instance),
      timing: this.#timing,
      ...(request.quarantined === undefined ? {} : { quarantined: request.quarantined }),
      ...(request.divisible === undefined ? {} : { divisible: request.divisible }),
      others: (than) => this.#workers.others(role, request.profile, than),
      choose: (declined) => this.#choose(request, declined),
      sendTo: (worker) => this.#sendTo(worker, request, jobId),
      isPresent: (worker) => this.#workers.isPresent(worker),
      mayClaim: (claimant) => role !== 'trainer' || this.#workers.mayTrain(trainerJob(request), claimant),
      claimed: (claimant) => this.#claimed(request, claimant),
      publish: () => this.#publish(request, jobId),
      placeInQueue: () => this.#placeInQueue(request, jobId),
      secretOf,
      ...(role !== 'reward' && {
        holdersFor: (claimant: WorkerIdentity) => ({
          secret: weightsSecret(key, request.runId),
          urls: this.#holdersOf(request, claimant),
        }),
      }),
      ...(request.stage === 'rollout' && {
        ...(request.scoring !== undefined && { scorer: () => this.#scorerFor(jobId) }),
        readJournal: (from: number) =>
          this.#link.orLost(readEntries(this.#jsm.direct, { runId: request.runId, jobId, secretOf }, from)),
      }),
      readResult: () => this.#result(request, jobId, key),
      noRoom: this.#noRoom,
      used: (use) => this.#used({ ...use, run: request.runId, iteration: request.at.iteration }),
      over: () => {
        this.#sessions.delete(name);
        if (this.#sessions.size === 0) this.#endWatch();
      },
    });
    this.#sessions.set(name, session);
    this.#watch ??= setInterval(() => void this.#lookAtWaiting(), this.#timing.watchdogMs);
    session.start();
    return session;
  }

  /** The watchdog of all sessions: one question for each queue, however many jobs wait. */
  async #lookAtWaiting(): Promise<void> {
    const waiting = [...this.#sessions.values()].filter(({ isHeld }) => !isHeld);
    const stages = new Set(waiting.map(({ stage }) => roleOfStage[stage]));
    for (const role of stages) {
      const queued = await this.#queued(role);
      for (const session of waiting)
        if (roleOfStage[session.stage] === role) session.look(queued.has(`${session.runId} ${session.jobId}`));
    }
  }

  #endWatch(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  /** Run and job of each message in a queue. */
  async #queued(role: Role): Promise<Set<string>> {
    try {
      const { state } = await this.#link.orLost(
        this.#jsm.streams.info(jobStream(role), { subjects_filter: jobStreamSubjects(role) }),
      );
      return new Set(Object.keys(state.subjects ?? {}).map((subject) => subject.split('.').slice(-2).join(' ')));
    } catch {
      return new Set(); // each session finds out by itself
    }
  }

  /** The worker that has what the job needs. */
  #choose<S extends Stage>(request: JobRequest<S>, declined: ReadonlySet<string>): Choice | undefined {
    if (roleOfStage[request.stage] === 'trainer') return this.#workers.trainerFor(trainerJob(request), declined);
    return request.follows === undefined ? undefined : this.#workers.scoringAhead(request.follows, declined);
  }

  #sendTo<S extends Stage>(worker: WorkerIdentity, request: JobRequest<S>, jobId: string): void {
    if (roleOfStage[request.stage] === 'trainer') this.#workers.reserve(worker);
    const facts = { stage: request.stage, jobId, iteration: request.at.iteration, runId: request.runId };
    faultPoint('publish.before', facts);
    this.#nc.publish(ownJobSubject(identityText(worker)), JSON.stringify(messageOf(request, jobId)));
    faultPoint('publish.after', facts);
  }

  /**
   * What others must know when a worker starts a job. When such a message is lost, they only do or keep more than they
   * need.
   */
  #claimed<S extends Stage>(request: JobRequest<S>, claimant: WorkerIdentity): void {
    const by = identityText(claimant);
    if (roleOfStage[request.stage] === 'trainer') {
      const { runId, components, standby } = trainerJob(request);
      if (!this.#workers.takesLease(trainerJob(request), claimant)) return;
      const taken = { v: wireVersion, runId, by, components, ...(standby && { standsBy: true }) };
      this.#nc.publish(leaseTakenSubject, JSON.stringify(taken));
    } else if (request.follows !== undefined) {
      const other = this.#workers.scoringAhead(request.follows)?.to;
      if (other === undefined || identityText(other) === by) return;
      const taken = { v: wireVersion, runId: request.runId, jobId: request.follows };
      this.#nc.publish(samplesTakenSubject(identityText(other)), JSON.stringify(taken));
    }
  }

  #scorerFor(rolloutJob: string): string | undefined {
    const scorer = this.#workers.scorerFor(rolloutJob);
    return scorer && identityText(scorer);
  }

  /** The holders that a process asks for the weights of a rollout job. */
  #holdersOf<S extends Stage>({ stage, runId, input, publication }: JobRequest<S>, claimant: WorkerIdentity): string[] {
    if (stage !== 'rollout') return [];
    const { weights } = input as StageTypes['rollout']['input'];
    const digest = publication?.digest ?? weights;
    return this.#weights.holdersFor(runId, digest, this.#workers.servesAt(claimant), this.#workers.trainerOf(runId));
  }

  /** Can processes that sample get the run's weights from its trainer? */
  servesWeights(runId: string): boolean {
    return this.#workers.trainerOf(runId) !== undefined;
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
    const order = [...this.#weights.begin(runId, digest, [trainer, ...this.#workers.samplers(queueOf(profile))])];
    this.#nc.publish(newWeightsSubject, JSON.stringify({ ...committed, v: 1, order } satisfies NewWeights));
  }

  /** Why no worker holds a job: the workers are busy with other runs, or no worker can run it. */
  #whyUnheld(role: Role, profile: string, runId: string): string {
    const others = [...this.#sessions.values()].filter(
      (session) => session.isHeld && session.runId !== runId && roleOfStage[session.stage] === role,
    );
    const runs = [...new Set(others.map((session) => session.runId))];
    const lacking = this.#workers.lacking(role);
    const free = `no free worker with the role ${role}${queueText(profile)} is available`;
    const why =
      runs.length === 0 ? free : `waiting for a ${role} slot: the workers are busy with run ${runs.join(', ')}`;
    return [why, ...lacking].join('; ');
  }

  /** Creates the job's result object without a worker, for a job that ran in parts. An existing result object wins. */
  async settle<S extends Stage>(
    request: JobRequest<S>,
    output: StageTypes[S]['output'],
    timings: ResultRecord['timings'],
    writer: Writer,
  ): Promise<JobResult<S>> {
    const jobId = jobIdOf(request.stage, request.input);
    const record: ResultRecord = {
      format: recordFormat,
      jobId,
      stage: request.stage,
      output: { ...output },
      timings,
      writer,
    };
    const key = await this.#claimKey(request.store);
    const own = proven(record, writer.process, claimSecret(key, request.runId, jobId, writer.process));
    const where = keys.result(request.runId, jobId);
    const { record: decided } = await decide(request.store, where, resultRecord, own, () => true);
    requireProof(key, request.runId, jobId, decided);
    return resultOf(jobId, decided);
  }

  /** The run pauses: its waiters are rejected, and its trainer and slots become free for other runs. */
  releaseLease(runId: string): void {
    this.#leave(runId);
    this.#weights.forget(runId);
    this.#nc.publish(leaseSubject, JSON.stringify({ v: wireVersion, runId }));
  }

  /** Does another run wait for the trainer of this one? */
  isWanted(runId: string): boolean {
    return this.#workers.isWanted(runId);
  }

  /** Resolves once another run waits for the trainer of this one: true. Or once the signal is aborted: false. */
  untilWanted(runId: string, signal: AbortSignal): Promise<boolean> {
    return this.#workers.untilWanted(runId, signal);
  }

  /**
   * The run goes on, and a run that waits gets its trainer first. When the message is lost, it keeps the trainer for
   * another turn.
   */
  endTurn(runId: string): void {
    this.#nc.publish(leaseSubject, JSON.stringify({ v: wireVersion, runId, turn: true }));
  }

  /**
   * The run was cancelled: its jobs end now, whether they are queued, claimed or running. No job of the run starts
   * until `runResumed`.
   */
  async cancelJobs(runId: string): Promise<void> {
    this.#cancelled.add(runId);
    this.#leave(runId);
    await this.#link.orLost(this.#nc.flush()); // when this returns, the workers have got the message
    for (const role of roles)
      await this.#link.orLost(
        this.#jsm.streams.purge(jobStream(role), { filter: runJobsFilter(role, runId) }).catch(async () => {
          this.#jsm = await ensureStreams(this.#nc, this.#timing); // the stream itself was lost; the new one is empty
        }),
      );
  }

  #leave(runId: string): void {
    for (const session of [...this.#sessions.values()]) session.leave(runId);
  }

  /** The run continues, perhaps after it was cancelled: its jobs may start again. */
  runResumed(runId: string): void {
    this.#cancelled.delete(runId);
  }

  #claimKey(store: Store): Promise<string> {
    const known = this.#claimKeys.get(store.place) ?? claimKeyOf(store, this.#process);
    this.#claimKeys.set(store.place, known);
    known.catch(() => this.#claimKeys.delete(store.place));
    return known;
  }

  async #publish<S extends Stage>(request: JobRequest<S>, jobId: string): Promise<number> {
    const message = messageOf(request, jobId);
    const subject = jobSubject(roleOfStage[request.stage], request.profile, request.runId, jobId);
    const facts = { stage: request.stage, jobId, iteration: request.at.iteration, runId: request.runId };
    try {
      faultPoint('publish.before', facts);
      const { seq } = await this.#link.orLost(
        this.#js.publish(subject, JSON.stringify(message), { retries: 2, timeout: 2_000 }),
      );
      faultPoint('publish.after', facts);
      return seq;
    } catch (error) {
      this.#jsm = await this.#link.orLost(ensureStreams(this.#nc, this.#timing));
      throw error;
    }
  }

  async #placeInQueue<S extends Stage>(request: JobRequest<S>, jobId: string): Promise<number | undefined> {
    const role = roleOfStage[request.stage];
    const last_by_subj = jobSubject(role, request.profile, request.runId, jobId);
    try {
      return (await this.#link.orLost(this.#jsm.streams.getMessage(jobStream(role), { last_by_subj })))?.seq;
    } catch {
      // The stream itself may be lost; the new one is empty.
      this.#jsm = await this.#link.orLost(ensureStreams(this.#nc, this.#timing));
      return undefined;
    }
  }

  /** Throws PauseError `DamagedRecord` for a result that no worker wrote which had claimed the job. */
  async #result<S extends Stage>(
    request: JobRequest<S>,
    jobId: string,
    key: string,
  ): Promise<JobResult<S> | undefined> {
    const found = await readRecord(request.store, keys.result(request.runId, jobId), resultRecord);
    if (found === undefined) return undefined;
    requireProof(key, request.runId, jobId, found.record);
    return resultOf(jobId, found.record);
  }
}

function messageOf<S extends Stage>(request: JobRequest<S>, jobId: string): JobMessage {
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
  };
}

function trainerJob<S extends Stage>({ runId, profile, input }: JobRequest<S>): TrainerJob {
  const { part, components, standby } = input as Partial<Trains & Pick<UpdateInput, 'standby'>>;
  return { runId, profile, standby: standby === true, ...(part === true && components && { components }) };
}

function resultOf<S extends Stage>(jobId: string, { output, timings, writer }: ResultRecord): JobResult<S> {
  return {
    jobId,
    output: output as unknown as StageTypes[S]['output'],
    timings,
    endedAt: writer.at,
    by: writer.process,
  };
}
