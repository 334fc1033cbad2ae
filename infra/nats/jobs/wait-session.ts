/**
 * The I/O around one `JobWait` (job-wait.ts: who may run the job) and one `Sending` (sending.ts: where its message is),
 * which are rules without I/O: it publishes the job, subscribes to claims and events, and reads the result object. All
 * activities that wait for the same job share one session.
 *
 * ```
 *   start()
 *     │ send it to the worker that has what it needs; else publish, unless the message is still in the queue
 *     ▼
 *   UNHELD ───── a claim is answered "go" ─────▶ HELD by a worker
 *     ▲                                            │
 *     ├── "failed" that may be retried: publish after a delay
 *     ├── another process took the holder's name, or its connection closed: publish at once
 *     └── no sign of life for ackWaitMs ───────────┤
 *                                                  │ "done", with the proven result → resolve all waiters → CLOSED
 *                                                  ▼
 *   After "done" without it, and while UNHELD and in no queue, #check() reads the result object:
 *     found   → resolve all waiters               → CLOSED
 *     absent  → publish, unless the message is still in the queue
 *   From both states:
 *     "failed" that cannot be retried, a poison job, a full disk, leave() → reject all waiters → CLOSED
 *     the last waiter aborts → CLOSED; the job itself stays in the queue or on its worker
 * ```
 */
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { PreemptedError } from '../../../core/errors.ts';
import type { PauseError } from '../../../core/errors.ts';
import { claimRequest, claimsOf, eventsOf, jobEvent, wireVersion } from '../../../core/wire/messages.ts';
import type { ClaimReply, ClaimRequest, JobEvent, Presence, Timing } from '../../../core/wire/messages.ts';
import { placeWords, senderOf, shownName } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity, WorkerPlace } from '../../../core/wire/worker-identity.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import { isFailureProven } from '../../../log/objects/result-proof.ts';
import type { Choice } from './choices.ts';
import type { Claimants } from './claimants.ts';
import { readMessage, sayDropped } from '../incoming.ts';
import { nearJob } from './job.ts';
import type { Job } from './job.ts';
import type { JobResult, WaitOptions } from '../../../core/ports/jobs.ts';
import type { JobQueue } from './job-queue.ts';
import { JobUses } from './job-use.ts';
import type { JobUse } from './job-use.ts';
import { JobWait } from './job-wait.ts';
import type { ClaimAnswer } from './job-wait.ts';
import { handOverJournal } from './journal-handover.ts';
import type { ResultOfJob } from './results.ts';
import { Sending } from './sending.ts';
import { isQueueFull } from '../streams.ts';

/** The error for a queue whose disk is full; undefined when the disk is not the reason. */
export type NoRoom = () => Promise<PauseError | undefined>;

/** Rejects the waiters of a run that is paused or has ended. */
export const atRest = (runId: string) => new PreemptedError('RunAtRest', `${runId} is paused or has ended`);

const unreachable = 'the message queue is not reachable';
const queueFull = 'the message queue is full';
/** Values of `queuedBecause` that say that publishing failed. */
const unpublished: ReadonlySet<string | undefined> = new Set([unreachable, queueFull]);
/** Pause before publishing is tried again. */
const unreachableMs = 200;
/** One look in this many, at a job that waits for a worker, reads the store. */
const readEvery = 5;

/** Looks at a job that waits for near workers, after which it is for any worker. */
const mostNearLooks = 3;

/** What a session asks of the dispatcher. */
export interface SessionDesk {
  readonly nc: NatsConnection;
  readonly timing: Timing;
  /** Instance of this machine. */
  readonly instance: string;
  readonly queue: JobQueue;
  readonly claimants: Claimants;
  readonly noRoom: NoRoom;
  /** Explains why no worker holds the job. */
  readonly whyUnheld: (job: Job) => string;
  /** Notes a use for the bill of the machine. */
  readonly used: (job: Job, use: JobUse) => void;
  readonly over: (job: Job) => void;
}

interface Waiter {
  readonly options: WaitOptions;
  readonly resolve: (result: JobResult) => void;
  readonly reject: (error: unknown) => void;
}

/** One job's subscriptions, timers and waiters. All end when the job ends or when the last waiter leaves. */
export class WaitSession {
  readonly job: Job;
  /** The job in the queue of near workers, who get it while there are any. */
  #near: Job | undefined;
  /** The one of the two that is in a queue, or was last. */
  #queued: Job;
  readonly #result: ResultOfJob;
  readonly #desk: SessionDesk;
  readonly #wait: JobWait;
  readonly #sending: Sending;
  readonly #uses: JobUses;
  readonly #waiters = new Set<Waiter>();
  readonly #closers: (() => void)[] = [];
  #over = false;
  #checking = false;
  #checkAgain = false;
  /** Timer of a worker that must confirm the message. */
  #silence: NodeJS.Timeout | undefined;
  #looks = 0;
  /** The last answer of `whyUnheld`. */
  #unheldBecause: string | undefined;
  /** Timer of a delayed publish. */
  #later: NodeJS.Timeout | undefined;

  /** `withinMs`: the longest round trip of a worker that should do the job; absent: any may. */
  constructor(job: Job, result: ResultOfJob, desk: SessionDesk, withinMs?: number) {
    const { timing, claimants } = desk;
    const { stage, quarantined = false, divisible = false } = job.request;
    this.job = job;
    this.#near = withinMs === undefined ? undefined : nearJob(job, withinMs);
    this.#result = result;
    this.#desk = desk;
    this.#queued = this.#wanted();
    this.#wait = new JobWait(job.jobId, timing, {
      quarantined,
      divisible,
      others: (than) => claimants.others(job, than),
    });
    this.#sending = new Sending(timing.presenceMs);
    this.#uses = new JobUses(stage, (use) => desk.used(job, use));
  }

  start(): void {
    const { nc } = this.#desk;
    const { role, jobId, request } = this.job;
    const { runId } = request;
    const claims = nc.subscribe(claimsOf(role, runId, jobId), {
      callback: (error, message) => this.#onClaim(error, message),
    });
    const events = nc.subscribe(eventsOf(runId, jobId), {
      callback: (error, message) => this.#onEvent(error, message),
    });
    if (request.stage === 'rollout') this.#closers.push(this.#handOverJournal());
    this.#closers.push(
      () => claims.unsubscribe(),
      () => events.unsubscribe(),
      () => clearTimeout(this.#later),
      () => clearTimeout(this.#silence),
    );
    void this.#publishIfAbsent();
  }

  /** The job in the queue in which it waits. */
  get queued(): Job {
    return this.#queued;
  }

  get runId(): string {
    return this.job.request.runId;
  }

  /** Has a worker that claimed the job shown a sign of life within the ack wait? */
  get isHeld(): boolean {
    return this.#wait.heldAt(Date.now());
  }

  join(options: WaitOptions): Promise<JobResult> {
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

  /** Publishes the job, unless an earlier control process did and the message is still in the queue. */
  async #publishIfAbsent(): Promise<void> {
    try {
      const place = this.#sending.isUrgent ? undefined : await this.#place();
      if (place !== undefined) this.#sending.wasInQueue(place);
      else if (!this.#over) await this.#send();
      if (unpublished.has(this.#wait.queuedBecause)) this.#wait.queuedBecause = undefined;
    } catch (error) {
      const full = await this.#desk.noRoom();
      if (full !== undefined) return this.#fail(full);
      // The session tries again soon; until then the waiters see why the job does not start.
      this.#wait.queuedBecause = isQueueFull(error) ? queueFull : unreachable;
      this.#report();
      if (!this.#over) this.#publishLater(unreachableMs);
    }
  }

  /**
   * Sends the job to the worker that has what it needs, if there is one, else to the queue, from which any worker takes
   * it.
   */
  async #send(): Promise<void> {
    const { queue, claimants } = this.#desk;
    const chosen = this.#choose();
    clearTimeout(this.#silence);
    this.#sending.goesTo(chosen?.to);
    if (chosen === undefined) {
      this.#queued = this.#wanted();
      return this.#sending.isInQueue(await queue.publish(this.#queued));
    }
    this.#silence = setTimeout(() => this.#unconfirmed(chosen), claimants.timingOf(chosen.to).claimMs);
    claimants.reserve(chosen.to, this.job);
    queue.sendTo(chosen.to, this.job);
  }

  /** The place of the job's message in one of its queues. */
  async #place(): Promise<number | undefined> {
    for (const one of this.#near === undefined ? [this.job] : [this.#near, this.job]) {
      const place = await this.#desk.queue.placeOf(one);
      if (place === undefined) continue;
      this.#queued = one;
      return place;
    }
    return undefined;
  }

  /** Near workers do not get on with the job: from now on it is for any worker. True when it waited for them. */
  #leaveNear(): boolean {
    const waited = this.#near !== undefined && this.#queued === this.#near;
    this.#near = undefined;
    return waited;
  }

  #wanted(): Job {
    return this.#near !== undefined && this.#desk.claimants.areThere(this.#near) ? this.#near : this.job;
  }

  /** The worker to send it to, of those that have not declined it; undefined: it goes to the queue. */
  #choose(): Choice | undefined {
    return this.#desk.claimants.choose(this.job, this.#sending.declined(Date.now()));
  }

  #unconfirmed(chosen: Choice): void {
    if (this.isHeld) return;
    if (this.#sending.unconfirmed(chosen, this.#desk.claimants.isPresent(chosen.to), Date.now())) this.#publishAnyway();
  }

  /**
   * Another process has taken the name of the job's holder, so the holder is dead. Publishes a copy at once, because
   * the server delivers the old message again only after the ack wait.
   */
  replaced(entry: Presence): void {
    const { incarnation, predecessorEnded } = entry;
    const held = this.#wait.replaced(this.#nameOf(entry), incarnation, predecessorEnded);
    if (held) this.#uses.lost(Date.now());
    if (held || (!this.isHeld && this.#sending.isReplaced(entry))) this.#publishAnyway();
  }

  /** This process of a worker is gone; as `replaced`. */
  lost(gone: WorkerIdentity): void {
    const held = this.#wait.lost(this.#nameOf(gone), gone.incarnation);
    if (held) this.#uses.lost(Date.now());
    if (held || (!this.isHeld && this.#sending.isSentTo(gone, gone.incarnation))) this.#publishAnyway();
  }

  /**
   * A worker is gone, and the queue has handed out all messages up to this place. The worker that got this one has not
   * claimed it: if it is the one that is gone, the queue would hand it out again only after the ack wait.
   */
  handedOut(place: number): void {
    if (!this.isHeld && this.#sending.isHandedOut(place)) this.#publishAnyway();
  }

  /**
   * The watchdog: no worker holds the job. `queued`: its message is in the queue. Then a worker will take it, and the
   * store is read only now and then, because a notification may be lost.
   */
  look(queued: boolean): void {
    if (this.isHeld) return;
    this.#looks += 1;
    // The near workers have gone, or have too much to do, or only say that they take such jobs.
    const isOver = this.#looks > mostNearLooks || this.#wanted() !== this.#near;
    if (isOver && this.#leaveNear()) return this.#publishAnyway();
    const { receivedBy } = this.#sending;
    const waits = queued || (receivedBy !== undefined && this.#desk.claimants.isPresent(receivedBy));
    if (!waits || this.#looks % readEvery === 0) return void this.#check();
    this.#unheldBecause = this.#desk.whyUnheld(this.job);
    this.#report();
  }

  /** The connection is back. Messages in both directions may have been lost with the server. */
  reconnected(): void {
    this.#wait.reconnected(Date.now());
    if (this.#wait.heldAt(Date.now())) void this.#check();
    else this.#publishAnyway();
  }

  /** Publishes even if an older message is still in the queue: the second claim gets "held", or finds the result. */
  #publishAnyway(): void {
    this.#sending.hurry();
    clearTimeout(this.#later);
    void this.#check();
  }

  /** No worker holds the job: the queue may have lost it, or no worker can run it. */
  async #lookForWorkers(): Promise<void> {
    await this.#publishIfAbsent();
    this.#unheldBecause = this.#desk.whyUnheld(this.job);
    this.#report();
  }

  /**
   * Reads the result: after a notification, and on every watchdog tick, since a notification or the queue may be lost.
   */
  async #check(): Promise<void> {
    this.#checkAgain = true;
    if (this.#checking) return;
    this.#checking = true;
    try {
      while (this.#checkAgain && !this.#over) {
        this.#checkAgain = false;
        const result = await this.#result.read();
        if (result !== undefined) this.#succeed(result);
        else if (!this.#sending.isDelayed && !this.#wait.heldAt(Date.now())) await this.#lookForWorkers();
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
    const sender = senderOf(message.subject);
    const { answer, alone } = this.#answer(sender, request);
    if (answer === 'go') this.#uses.claimed(sender.instance, request.incarnation, Date.now());
    const { stage, at, runId } = this.job.request;
    faultPoint('claim.answer', { stage, answer, iteration: at.iteration, runId });
    message.respond(
      JSON.stringify(
        answer === 'go'
          ? this.#go({ ...sender, incarnation: request.incarnation }, alone)
          : ({ v: wireVersion, answer } satisfies ClaimReply),
      ),
    );
    if (this.#wait.poison !== undefined) this.#fail(this.#wait.poison);
    this.#report();
  }

  #answer(sender: WorkerPlace, request: ClaimRequest): ClaimAnswer {
    if (!this.isHeld) {
      if (!this.#desk.claimants.mayClaim(this.job, sender)) return { answer: 'held', alone: false };
      const chosen = this.#choose();
      if (chosen?.only === true && placeWords(chosen.to) !== placeWords(sender)) {
        // The message that this worker got is dropped.
        if (!this.#sending.isSentTo(chosen.to, chosen.to.incarnation)) this.#publishAnyway();
        return { answer: 'drop', alone: false };
      }
    }
    const { ackWaitMs } = this.#desk.claimants.timingOf(sender);
    return this.#wait.claim({ ...request, worker: this.#nameOf(sender), ackWaitMs }, Date.now());
  }

  #go(claimant: WorkerIdentity, alone: boolean): ClaimReply {
    const { claimants } = this.#desk;
    const { job } = this;
    claimants.claimed(job, claimant);
    const weights = { secret: this.#result.weightsSecret, urls: claimants.holdersFor(job, claimant) };
    const scorer = claimants.scorerOf(this.#queued);
    const first = this.#sending.started() && { first: true as const };
    return {
      v: wireVersion,
      answer: 'go',
      alone,
      secret: this.#result.secretOf(claimant),
      ...(job.role !== 'reward' && { weights }),
      ...first,
      ...(scorer !== undefined && { scorer }),
    };
  }

  #onEvent(error: Error | null, message: Msg): void {
    if (error !== null || this.#over) return;
    const event = readMessage(message, jobEvent);
    if (event === undefined) return sayDropped(message.subject);
    const sender = senderOf(message.subject);
    if (event.type === 'failed') {
      const secret = this.#result.secretOf({ ...sender, incarnation: event.incarnation });
      if (!isFailureProven(event, secret))
        return console.error(
          `${message.subject}: dropped a failure whose sender cannot prove that it had claimed the job`,
        );
    }
    if (event.type === 'received') this.#sending.received(sender);
    // What a near worker lacks, or has failed at, another one may do.
    if ((event.type === 'queued' || event.type === 'failed') && !this.isHeld && this.#leaveNear())
      this.#publishAnyway();
    if (event.type === 'queued' && this.#sending.refused(sender, Date.now()) && !this.isHeld) this.#publishAnyway();
    const holder = this.#wait.holder;
    const verdict = this.#wait.event(event, this.#nameOf(sender), Date.now());
    if (holder !== undefined && this.#wait.holder === undefined) this.#uses.lost(Date.now());
    this.#report();
    if (verdict.type === 'give-up') this.#fail(verdict.error);
    else if (verdict.type === 'read-result') this.#ended(event);
    else if (verdict.type === 'publish') this.#publishLater(verdict.delayMs);
  }

  /** A worker says that the result is there. When it also says what is in it, the result is not read. */
  #ended(event: JobEvent): void {
    const text = event.type === 'done' ? event.result : undefined;
    const told = text === undefined ? undefined : this.#result.told(text);
    if (told === undefined) void this.#check();
    else this.#succeed(told);
  }

  #handOverJournal(): () => void {
    const { nc, queue } = this.#desk;
    const nameOf = (place: WorkerPlace) => this.#nameOf(place);
    return handOverJournal(this.job, {
      nc,
      nameOf,
      isHeldBy: (asker, incarnation) => this.#wait.isHeldBy(nameOf(asker), incarnation),
      read: (from) => queue.readJournal(this.job, (claimant) => this.#result.secretOf(claimant), from),
    });
  }

  /** Name of a worker for users; different for different places. */
  #nameOf(place: WorkerPlace): string {
    return shownName(place, this.#desk.instance);
  }

  /** Publishes after a delay. The watchdog does not publish before that. */
  #publishLater(delayMs: number): void {
    clearTimeout(this.#later);
    this.#sending.delay();
    this.#later = setTimeout(() => {
      this.#sending.delayOver();
      void this.#check();
    }, delayMs);
  }

  /** Rejects the waiters if this is a job of the run: their workflow has stopped waiting for it. */
  leave(runId: string): void {
    if (this.runId === runId) this.#fail(atRest(runId));
  }

  #report(): void {
    const queued = this.#wait.queuedBecause ?? (this.isHeld ? undefined : this.#unheldBecause);
    for (const { options } of this.#waiters) options.onProgress?.(this.#wait.progress, queued);
  }

  #succeed(result: JobResult): void {
    this.#uses.done(Date.now());
    const waiters = [...this.#waiters];
    this.#close();
    for (const waiter of waiters) waiter.resolve(result);
  }

  #fail(error: unknown): void {
    this.#uses.lost(Date.now());
    const waiters = [...this.#waiters];
    this.#close();
    for (const waiter of waiters) waiter.reject(error);
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#waiters.clear();
    for (const close of this.#closers) close();
    this.#desk.over(this.job);
  }
}
