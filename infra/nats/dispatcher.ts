/**
 * The control side of dispatch: publish an idempotent job, answer claims, wait for its result object. Safe to call
 * again for the same job from anywhere: an existing result is returned, a running job is joined.
 */
import { jetstream } from '@nats-io/jetstream';
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { PreemptedError } from '../../core/errors.ts';
import { offeredProfile } from '../../core/records/former-profiles.ts';
import type { PauseError } from '../../core/errors.ts';
import { makeJobId } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, resultRecord } from '../../core/records/schema.ts';
import type { ResultRecord, Writer } from '../../core/records/schema.ts';
import type { Store } from '../../core/ports.ts';
import { roles } from '../../core/roles.ts';
import type { Role } from '../../core/roles.ts';
import { roleOfStage } from '../../core/wire/jobs.ts';
import type { Stage, StageTypes } from '../../core/wire/jobs.ts';
import {
  claimRequest,
  claimSubject,
  eventSubject,
  jobEvent,
  jobStream,
  jobSubject,
  leaseSubject,
  runJobsFilter,
  wireVersion,
} from '../../core/wire/messages.ts';
import type { JobMessage, Presence, Timing } from '../../core/wire/messages.ts';
import { faultPoint } from '../faults/index.ts';
import { digestOf } from '../store/digest.ts';
import { decide, readRecord } from '../store/records.ts';
import { CancelledRuns } from './cancelled-runs.ts';
import { readMessage } from './incoming.ts';
import { linkOf } from './link.ts';
import type { Link } from './link.ts';
import { ensureStreams, isQueueFull } from './streams.ts';
import { JobWait } from './wait.ts';
import type { JobWaitOptions, Progress } from './wait.ts';
import { Workers } from './workers.ts';

export interface JobRequest<S extends Stage> {
  readonly stage: S;
  readonly runId: string;
  readonly at: { readonly term: number; readonly iteration: number };
  readonly store: Store;
  /** `any`, or the numeric profile that the worker must reproduce, as a record names it. */
  readonly profile: string;
  readonly input: StageTypes[S]['input'];
  /** A part of a job that ended its workers: it runs with nothing beside it. */
  readonly quarantined?: boolean;
  /** When it ends a worker its asker cuts it into parts. */
  readonly divisible?: boolean;
}

/** Told to a run when a worker that was at it has ended, and another process is there in its place. */
export type WorkerEnded = (runId: string, worker: string, how: string) => void;

/** Why the queue can take nothing for now, when it is for want of room. */
export type NoRoom = () => Promise<PauseError | undefined>;

export interface JobResult<S extends Stage> {
  readonly jobId: string;
  readonly output: StageTypes[S]['output'];
  readonly timings: ResultRecord['timings'];
}

export interface WaitOptions {
  /** Aborting leaves the job alone: whoever waits next finds it. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: Progress | undefined, queuedBecause: string | undefined) => void;
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
  readonly #link: Link;
  readonly #noRoom: NoRoom;
  readonly #ended: WorkerEnded;
  readonly #cancelled: CancelledRuns;
  #jsm: JetStreamManager;

  private constructor(nc: NatsConnection, jsm: JetStreamManager, timing: Timing, noRoom: NoRoom, ended: WorkerEnded) {
    this.#nc = nc;
    this.#ended = ended;
    this.#noRoom = noRoom;
    this.#js = jetstream(nc);
    this.#jsm = jsm;
    this.#timing = timing;
    this.#workers = new Workers(nc, timing, (entry, before) => this.#replaced(entry, before));
    this.#link = linkOf(nc);
    this.#cancelled = new CancelledRuns(nc);
    this.#link.onBack(() => this.#sessions.forEach((session) => session.reconnected()));
  }

  /** `noRoom`: asked when a job could not be published. */
  static async open(
    nc: NatsConnection,
    timing: Timing,
    noRoom: NoRoom = async () => undefined,
    ended: WorkerEnded = () => {},
  ): Promise<Dispatcher> {
    return new Dispatcher(nc, await ensureStreams(nc), timing, noRoom, ended);
  }

  #replaced(entry: Presence, before: Presence | undefined): void {
    const sessions = [...this.#sessions.values()];
    const runs = sessions
      .filter(({ jobId, runId }) => before?.jobs.includes(jobId) || before?.lease === runId)
      .map(({ runId }) => runId);
    for (const runId of new Set(runs)) this.#ended(runId, entry.worker, entry.predecessorEnded ?? 'vanished');
    for (const session of sessions) session.replaced(entry);
  }

  /** Throws what the job's failure calls for: TerminalError, PauseError, or the signal's reason. */
  async run<S extends Stage>(asked: JobRequest<S>, options: WaitOptions): Promise<JobResult<S>> {
    const request: JobRequest<S> = { ...asked, profile: offeredProfile(asked.profile) };
    if (this.#cancelled.has(request.runId)) throw atRest(request.runId);
    const jobId = jobIdOf(request.stage, request.input);
    const done = await this.#result(request, jobId);
    if (done !== undefined) return done;
    const facts = { stage: request.stage, iteration: request.at.iteration, runId: request.runId };
    faultPoint('wait.begin', facts);
    const onProgress: WaitOptions['onProgress'] = (progress, queued) => {
      options.onProgress?.(progress, queued);
      if (progress !== undefined) faultPoint('wait.progress', facts);
    };
    const result = (await this.#session(request, jobId).join({ ...options, onProgress })) as JobResult<S>;
    faultPoint('wait.end', facts);
    return result;
  }

  /** Two activities may wait for one job: they share a session, so that a claim gets one answer. */
  #session<S extends Stage>(request: JobRequest<S>, jobId: string): WaitSession {
    const key = `${request.runId} ${jobId}`;
    const known = this.#sessions.get(key);
    if (known !== undefined) return known;
    const role = roleOfStage[request.stage];
    const session = new WaitSession({
      runId: request.runId,
      jobId,
      stage: request.stage,
      iteration: request.at.iteration,
      whyUnheld: () => this.#whyUnheld(role, request.profile, request.runId),
      nc: this.#nc,
      timing: this.#timing,
      ...(request.quarantined === undefined ? {} : { quarantined: request.quarantined }),
      ...(request.divisible === undefined ? {} : { divisible: request.divisible }),
      others: (than) => this.#workers.others(role, request.profile, than),
      publish: () => this.#publish(request, jobId),
      stillQueued: () => this.#isQueued(request, jobId),
      readResult: () => this.#result(request, jobId),
      noRoom: this.#noRoom,
      over: () => this.#sessions.delete(key),
    });
    this.#sessions.set(key, session);
    session.start();
    return session;
  }

  /** What nobody works on waits for other runs' jobs to end, or for a worker that can do it. */
  #whyUnheld(role: Role, profile: string, runId: string): string {
    const others = [...this.#sessions.values()].filter(
      (session) => session.isHeld && session.runId !== runId && roleOfStage[session.stage] === role,
    );
    const runs = [...new Set(others.map((session) => session.runId))];
    const lacking = this.#workers.lacking(role);
    const free = `no free worker with the role ${role}${profile === anyWorker ? '' : ` and the profile ${profile}`} takes it`;
    const why =
      runs.length === 0 ? free : `waiting for a ${role} slot: the workers are busy with run ${runs.join(', ')}`;
    return [why, ...lacking].join('; ');
  }

  /** Decides the job's result in a worker's stead: made of its parts, or that it cannot be done. What was decided before counts. */
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
    const { record: decided } = await decide(
      request.store,
      keys.result(request.runId, jobId),
      resultRecord,
      record,
      () => true,
    );
    return { jobId, output: decided.output as unknown as StageTypes[S]['output'], timings: decided.timings };
  }

  /** The run does not go on for now: nobody waits for its jobs, and its trainer and slots are for others. */
  releaseLease(runId: string): void {
    for (const session of [...this.#sessions.values()]) session.leave(runId);
    this.#nc.publish(leaseSubject, JSON.stringify({ v: wireVersion, runId }));
  }

  /**
   * The run ended before its work was done: its jobs end now, whether they wait in the queue, are claimed, or are at work.
   * Until `runResumed` no job of it begins.
   */
  async cancelJobs(runId: string): Promise<void> {
    this.#cancelled.add(runId);
    for (const session of [...this.#sessions.values()]) session.leave(runId);
    await this.#link.orLost(this.#nc.flush()); // the workers have been told when this returns
    for (const role of roles)
      await this.#link.orLost(
        this.#jsm.streams.purge(jobStream(role), { filter: runJobsFilter(role, runId) }).catch(async () => {
          this.#jsm = await ensureStreams(this.#nc); // the queue itself was gone: what is made anew holds nothing
        }),
      );
  }

  /** The run is worked on again, perhaps after it was cancelled. */
  runResumed(runId: string): void {
    this.#cancelled.delete(runId);
  }

  async #publish<S extends Stage>(request: JobRequest<S>, jobId: string): Promise<void> {
    const message: JobMessage = {
      v: wireVersion,
      jobId,
      stage: request.stage,
      runId: request.runId,
      at: request.at,
      store: request.store.url,
      input: { ...request.input },
    };
    const subject = jobSubject(roleOfStage[request.stage], request.profile, request.runId, jobId);
    const facts = { stage: request.stage, jobId, iteration: request.at.iteration, runId: request.runId };
    try {
      faultPoint('publish.before', facts);
      await this.#link.orLost(this.#js.publish(subject, JSON.stringify(message), { retries: 2, timeout: 2_000 }));
      faultPoint('publish.after', facts);
    } catch (error) {
      this.#jsm = await this.#link.orLost(ensureStreams(this.#nc));
      throw error;
    }
  }

  async #isQueued<S extends Stage>(request: JobRequest<S>, jobId: string): Promise<boolean> {
    const role = roleOfStage[request.stage];
    const last_by_subj = jobSubject(role, request.profile, request.runId, jobId);
    try {
      return (await this.#link.orLost(this.#jsm.streams.getMessage(jobStream(role), { last_by_subj }))) !== null;
    } catch {
      // The queue itself may be gone: it is declared again, and holds nothing.
      this.#jsm = await this.#link.orLost(ensureStreams(this.#nc));
      return false;
    }
  }

  async #result<S extends Stage>(request: JobRequest<S>, jobId: string): Promise<JobResult<S> | undefined> {
    const found = await readRecord(request.store, keys.result(request.runId, jobId), resultRecord);
    if (found === undefined) return undefined;
    return { jobId, output: found.record.output as unknown as StageTypes[S]['output'], timings: found.record.timings };
  }
}

const atRest = (runId: string) => new PreemptedError('RunAtRest', `${runId} does not go on for now`);

/** Profile of jobs that any worker may do. */
const anyWorker = 'any';
const unreachable = 'the message queue is not reachable';
const queueFull = 'the message queue is full';
/** Why a job is not in the queue. */
const unpublished: ReadonlySet<string | undefined> = new Set([unreachable, queueFull]);
/** How soon a queue that did not answer is asked again. */
const unreachableMs = 200;

interface SessionPorts extends JobWaitOptions {
  readonly runId: string;
  readonly jobId: string;
  readonly stage: Stage;
  readonly iteration: number;
  /** What is said while nobody works on it. */
  readonly whyUnheld: () => string;
  readonly nc: NatsConnection;
  readonly timing: Timing;
  readonly publish: () => Promise<void>;
  readonly stillQueued: () => Promise<boolean>;
  readonly readResult: () => Promise<JobResult<Stage> | undefined>;
  readonly noRoom: NoRoom;
  readonly over: () => void;
}

interface Waiter {
  readonly options: WaitOptions;
  readonly resolve: (result: JobResult<Stage>) => void;
  readonly reject: (error: unknown) => void;
}

/** Subscriptions and timers of one job's wait; all of them end with it, or when its last waiter leaves. */
class WaitSession {
  readonly #ports: SessionPorts;
  readonly #wait: JobWait;
  readonly #waiters = new Set<Waiter>();
  readonly #closers: (() => void)[] = [];
  #over = false;
  #checking = false;
  #checkAgain = false;
  /** A message that is still there is as good as lost. */
  #anyway = false;
  /** Why nobody works on it, as far as the other jobs and the workers tell. */
  #unheldBecause: string | undefined;
  /** Until then the job is not published again. */
  #later: NodeJS.Timeout | undefined;

  constructor(ports: SessionPorts) {
    this.#ports = ports;
    this.#wait = new JobWait(ports.jobId, ports.timing, ports);
  }

  start(): void {
    const { nc, runId, jobId, timing } = this.#ports;
    const claims = nc.subscribe(claimSubject(runId, jobId), {
      callback: (error, message) => this.#onClaim(error, message),
    });
    const events = nc.subscribe(eventSubject(runId, jobId), {
      callback: (error, message) => this.#onEvent(error, message),
    });
    const watchdog = setInterval(() => this.#look(), timing.watchdogMs);
    this.#closers.push(
      () => claims.unsubscribe(),
      () => events.unsubscribe(),
      () => clearInterval(watchdog),
      () => clearTimeout(this.#later),
    );
    void this.#publishIfAbsent();
  }

  get jobId(): string {
    return this.#ports.jobId;
  }

  get runId(): string {
    return this.#ports.runId;
  }

  get stage(): Stage {
    return this.#ports.stage;
  }

  /** Has a worker shown lately that it works on it? */
  get isHeld(): boolean {
    return this.#wait.heldAt(Date.now());
  }

  join(options: WaitOptions): Promise<JobResult<Stage>> {
    return new Promise((resolve, reject) => {
      const waiter = { options, resolve, reject };
      const onAbort = () => {
        this.#waiters.delete(waiter);
        if (this.#waiters.size === 0) this.#close();
        reject(options.signal.reason);
      };
      if (options.signal.aborted) return onAbort();
      options.signal.addEventListener('abort', onAbort, { once: true });
      this.#closers.push(() => options.signal.removeEventListener('abort', onAbort));
      this.#waiters.add(waiter);
    });
  }

  /** A predecessor may have published it; a message that still waits is not doubled. */
  async #publishIfAbsent(): Promise<void> {
    try {
      if ((this.#anyway || !(await this.#ports.stillQueued())) && !this.#over) {
        this.#anyway = false;
        await this.#ports.publish();
      }
      if (unpublished.has(this.#wait.queuedBecause)) this.#wait.queuedBecause = undefined;
    } catch (error) {
      const full = await this.#ports.noRoom();
      if (full !== undefined) return this.#fail(full);
      // Tried again soon, and the waiter shows why nothing moves.
      this.#wait.queuedBecause = isQueueFull(error) ? queueFull : unreachable;
      this.#report();
      if (!this.#over) this.#publishLater(unreachableMs);
    }
  }

  /** Its worker died and another is there in its place: a copy of the message now, since the old one returns only after the ack wait. */
  replaced({ worker, incarnation, predecessorEnded }: Presence): void {
    if (this.#wait.replaced(worker, incarnation, predecessorEnded)) this.#publishAnyway();
  }

  /** While somebody is heard to work on it there is no result; the store need not be asked. */
  #look(): void {
    if (!this.#wait.heldAt(Date.now())) void this.#check();
  }

  /** What was on its way when the server died is lost, in both directions. */
  reconnected(): void {
    this.#wait.reconnected(Date.now());
    if (this.#wait.heldAt(Date.now())) void this.#check();
    else this.#publishAnyway();
  }

  /** Whether or not an older message is still there: its second claim finds the job held, or done. */
  #publishAnyway(): void {
    this.#anyway = true;
    clearTimeout(this.#later);
    this.#later = undefined;
    void this.#check();
  }

  /** Nobody works on it: it may have been lost with the queue, or there is no worker for it. */
  async #lookForWorkers(): Promise<void> {
    await this.#publishIfAbsent();
    this.#unheldBecause = this.#ports.whyUnheld();
    this.#report();
  }

  /** After a notification, and as a safety net for lost ones and for a wiped queue. */
  async #check(): Promise<void> {
    this.#checkAgain = true;
    if (this.#checking) return;
    this.#checking = true;
    try {
      while (this.#checkAgain && !this.#over) {
        this.#checkAgain = false;
        const result = await this.#ports.readResult();
        if (result !== undefined) this.#succeed(result);
        else if (this.#later === undefined && !this.#wait.heldAt(Date.now())) await this.#lookForWorkers();
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#checking = false;
    }
  }

  #onClaim(error: Error | null, message: Msg): void {
    if (error !== null || this.#over) return;
    const request = readMessage(message, claimRequest);
    if (request === undefined) return sayDropped(message.subject);
    const reply = this.#wait.claim(request, Date.now());
    faultPoint('claim.answer', {
      stage: this.#ports.stage,
      answer: reply.answer,
      iteration: this.#ports.iteration,
      runId: this.#ports.runId,
    });
    message.respond(JSON.stringify(reply));
    if (this.#wait.poison !== undefined) this.#fail(this.#wait.poison);
    this.#report();
  }

  #onEvent(error: Error | null, message: Msg): void {
    if (error !== null || this.#over) return;
    const event = readMessage(message, jobEvent);
    if (event === undefined) return sayDropped(message.subject);
    const verdict = this.#wait.event(event, Date.now());
    this.#report();
    if (verdict.type === 'give-up') this.#fail(verdict.error);
    else if (verdict.type === 'read-result') void this.#check();
    else if (verdict.type === 'publish') this.#publishLater(verdict.delayMs);
  }

  /** The watchdog keeps off meanwhile: a pause is a pause. */
  #publishLater(delayMs: number): void {
    clearTimeout(this.#later);
    this.#later = setTimeout(() => {
      this.#later = undefined;
      void this.#check();
    }, delayMs);
  }

  /** When it is a session of this run: whoever still waits was left behind by its workflow. */
  leave(runId: string): void {
    if (this.#ports.runId === runId) this.#fail(atRest(runId));
  }

  #report(): void {
    const queued = this.#wait.queuedBecause ?? (this.isHeld ? undefined : this.#unheldBecause);
    for (const { options } of this.#waiters) options.onProgress?.(this.#wait.progress, queued);
  }

  #succeed(result: JobResult<Stage>): void {
    const waiters = [...this.#waiters];
    this.#close();
    for (const waiter of waiters) waiter.resolve(result);
  }

  #fail(error: unknown): void {
    const waiters = [...this.#waiters];
    this.#close();
    for (const waiter of waiters) waiter.reject(error);
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#waiters.clear();
    for (const close of this.#closers) close();
    this.#ports.over();
  }
}

function sayDropped(subject: string): void {
  console.error(`${subject}: dropped what is not a message of this version`);
}
