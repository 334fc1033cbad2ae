/**
 * The I/O around one `JobWait` (job-wait.ts, the rules without I/O): it publishes the job, subscribes to claims and
 * events, and reads the result object. All activities that wait for the same job share one session.
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
 *                                                  │ "done"
 *                                                  ▼
 *   After "done", and while UNHELD and in no queue, #check() reads the result object:
 *     found   → resolve all waiters               → CLOSED
 *     absent  → publish, unless the message is still in the queue
 *   From both states:
 *     "failed" that cannot be retried, a poison job, a full disk, leave() → reject all waiters → CLOSED
 *     the last waiter aborts → CLOSED; the job itself stays in the queue or on its worker
 * ```
 */
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { errorToJson, PreemptedError } from '../../core/errors.ts';
import type { PauseError } from '../../core/errors.ts';
import type { ResultRecord } from '../../core/records/schema.ts';
import type { Role } from '../../core/roles.ts';
import { roleOfStage } from '../../core/wire/jobs.ts';
import type { Stage, StageTypes } from '../../core/wire/jobs.ts';
import { journalReadsOf, journalRequest, journalVersion } from '../../core/wire/journal.ts';
import type { JournalReply } from '../../core/wire/journal.ts';
import { claimRequest, claimsOf, eventsOf, jobEvent, wireVersion } from '../../core/wire/messages.ts';
import type { ClaimReply, ClaimRequest, Presence, Timing } from '../../core/wire/messages.ts';
import type { WeightsHolders } from '../../core/wire/weights.ts';
import { identityText, placeWords, senderOf } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity, WorkerPlace } from '../../core/wire/worker-identity.ts';
import { faultPoint } from '../faults/index.ts';
import { isFailureProven } from '../store/result-proof.ts';
import type { Choice } from './choices.ts';
import { readMessage } from './incoming.ts';
import { JobUses } from './job-use.ts';
import type { JobUse } from './job-use.ts';
import { JobWait } from './job-wait.ts';
import type { ClaimAnswer, JobWaitOptions, Progress } from './job-wait.ts';
import { isQueueFull } from './streams.ts';

/** The error for a queue whose disk is full; undefined when the disk is not the reason. */
export type NoRoom = () => Promise<PauseError | undefined>;

/** The content of a job's result object. */
export interface JobResult<S extends Stage> {
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

/** Rejects the waiters of a run that is paused or has ended. */
export const atRest = (runId: string) => new PreemptedError('RunAtRest', `${runId} is paused or has ended`);

const unreachable = 'the message queue is not reachable';
const queueFull = 'the message queue is full';
/** Values of `queuedBecause` that say that publishing failed. */
const unpublished: ReadonlySet<string | undefined> = new Set([unreachable, queueFull]);
/** Pause before publishing is tried again. */
const unreachableMs = 200;
/** How often a job is sent to the worker that has its state, while that one is present and does not confirm it. */
const mostSends = 3;
/** One look in this many, at a job that waits for a worker, reads the store. */
const readEvery = 5;

interface SessionPorts extends JobWaitOptions {
  readonly runId: string;
  readonly jobId: string;
  readonly stage: Stage;
  readonly profile: string;
  readonly iteration: number;
  /** Explains why no worker holds the job. */
  readonly whyUnheld: () => string;
  readonly nc: NatsConnection;
  readonly timing: Timing;
  /** Resolves with the place of its message in the queue. */
  readonly publish: () => Promise<number>;
  /** The place of its message in the queue; undefined when none is there. */
  readonly placeInQueue: () => Promise<number | undefined>;
  /** The worker to send it to, of those that have not declined it; undefined: it goes to the queue. */
  readonly choose: (declined: ReadonlySet<string>) => Choice | undefined;
  readonly sendTo: (worker: WorkerIdentity) => void;
  readonly isPresent: (worker: WorkerIdentity) => boolean;
  /** May this worker claim it? */
  readonly mayClaim: (claimant: WorkerPlace) => boolean;
  readonly claimed: (claimant: WorkerIdentity) => void;
  /** Name of a worker for users; different for different places. */
  readonly nameOf: (place: WorkerPlace) => string;
  /** The secret of this process's claim of the job. */
  readonly secretOf: (claimant: WorkerIdentity) => string;
  /** The holders that the process of an engine's job asks for weights. */
  readonly holdersFor?: (claimant: WorkerIdentity) => WeightsHolders;
  readonly readResult: () => Promise<JobResult<Stage> | undefined>;
  /** The worker that scores the samples of a rollout job ahead. */
  readonly scorer?: () => string | undefined;
  /** Reads the entries of a rollout job's journal from this position on. */
  readonly readJournal?: (from: number) => Promise<JournalReply>;
  readonly noRoom: NoRoom;
  /** Notes a use for the bill of the machine. */
  readonly used: (use: JobUse) => void;
  readonly over: () => void;
}

interface Waiter {
  readonly options: WaitOptions;
  readonly resolve: (result: JobResult<Stage>) => void;
  readonly reject: (error: unknown) => void;
}

/** One job's subscriptions, timers and waiters. All end when the job ends or when the last waiter leaves. */
export class WaitSession {
  readonly #ports: SessionPorts;
  readonly #wait: JobWait;
  readonly #uses: JobUses;
  readonly #waiters = new Set<Waiter>();
  readonly #closers: (() => void)[] = [];
  #over = false;
  #checking = false;
  #checkAgain = false;
  /** Publish even when an older message is still in the queue. */
  #anyway = false;
  /** The place of its newest message in the queue; undefined when it was sent to a worker. */
  #place: number | undefined;
  /** The worker to which it was sent, and whether that one has it. */
  #sent: { readonly to: WorkerIdentity; received: boolean; readonly times: number } | undefined;
  /** Workers that did not take it when it was sent to them. */
  readonly #declined = new Set<string>();
  #silence: NodeJS.Timeout | undefined;
  /** No worker has had the job, as far as this process knows. */
  #isFirst = true;
  #looks = 0;
  /** The last answer of `whyUnheld`. */
  #unheldBecause: string | undefined;
  /** Timer of a delayed publish. While it runs, the watchdog does not publish. */
  #later: NodeJS.Timeout | undefined;

  constructor(ports: SessionPorts) {
    this.#ports = ports;
    this.#wait = new JobWait(ports.jobId, ports.timing, ports);
    this.#uses = new JobUses(ports.stage, ports.used);
  }

  start(): void {
    const { nc, runId, jobId, stage } = this.#ports;
    const claims = nc.subscribe(claimsOf(roleOfStage[stage], runId, jobId), {
      callback: (error, message) => this.#onClaim(error, message),
    });
    const events = nc.subscribe(eventsOf(runId, jobId), {
      callback: (error, message) => this.#onEvent(error, message),
    });
    const { readJournal } = this.#ports;
    if (readJournal !== undefined) this.#handOver(readJournal);
    this.#closers.push(
      () => claims.unsubscribe(),
      () => events.unsubscribe(),
      () => clearTimeout(this.#later),
      () => clearTimeout(this.#silence),
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

  get queue(): { readonly role: Role; readonly profile: string } {
    return { role: roleOfStage[this.#ports.stage], profile: this.#ports.profile };
  }

  /** Has a worker that claimed the job shown a sign of life within the ack wait? */
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

  /** Publishes the job, unless an earlier control process did and the message is still in the queue. */
  async #publishIfAbsent(): Promise<void> {
    try {
      const place = this.#anyway ? undefined : await this.#ports.placeInQueue();
      if (place !== undefined) {
        this.#isFirst = false;
        this.#place = place;
      } else if (!this.#over) {
        this.#anyway = false;
        await this.#send();
      }
      if (unpublished.has(this.#wait.queuedBecause)) this.#wait.queuedBecause = undefined;
    } catch (error) {
      const full = await this.#ports.noRoom();
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
    const { choose, sendTo, publish, timing } = this.#ports;
    const chosen = choose(this.#declined);
    clearTimeout(this.#silence);
    this.#place = undefined;
    if (chosen === undefined) {
      this.#sent = undefined;
      this.#place = await publish();
      return;
    }
    const { to } = chosen;
    const times = this.#sent?.to.incarnation === to.incarnation ? this.#sent.times + 1 : 1;
    this.#sent = { to, received: false, times };
    this.#silence = setTimeout(() => this.#unconfirmed(chosen), timing.claimMs);
    sendTo(to);
  }

  /**
   * A worker that has the job's state may only be slow; to give the job to another one costs more than to ask again.
   */
  #unconfirmed({ to, only }: Choice): void {
    if (this.#sent?.received !== false || this.isHeld) return;
    if (only && this.#sent.times < mostSends && this.#ports.isPresent(to)) this.#publishAnyway();
    else this.#decline(to);
  }

  /** The worker did not take it: it is sent to the next one, or published. */
  #decline(worker: WorkerIdentity): void {
    const name = identityText(worker);
    this.#declined.add(name);
    this.#sent = undefined;
    const forget = setTimeout(() => this.#declined.delete(name), this.#ports.timing.presenceMs);
    this.#closers.push(() => clearTimeout(forget));
    if (!this.isHeld) this.#publishAnyway();
  }

  /** Was it sent to this process? */
  #isSentTo({ instance, worker }: WorkerPlace, incarnation?: string): boolean {
    const to = this.#sent?.to;
    return (
      to?.instance === instance && to.worker === worker && (incarnation === undefined || to.incarnation === incarnation)
    );
  }

  /**
   * Another process has taken the name of the job's holder, so the holder is dead. Publishes a copy at once, because
   * the server delivers the old message again only after the ack wait.
   */
  replaced(entry: Presence): void {
    const { incarnation, predecessorEnded } = entry;
    const held = this.#wait.replaced(this.#ports.nameOf(entry), incarnation, predecessorEnded);
    if (held) this.#uses.lost(Date.now());
    if (held || (!this.isHeld && this.#isSentTo(entry) && !this.#isSentTo(entry, incarnation))) this.#publishAnyway();
  }

  /** This process of a worker is gone; as `replaced`. */
  lost(gone: WorkerIdentity): void {
    const held = this.#wait.lost(this.#ports.nameOf(gone), gone.incarnation);
    if (held) this.#uses.lost(Date.now());
    if (held || (!this.isHeld && this.#isSentTo(gone, gone.incarnation))) this.#publishAnyway();
  }

  /**
   * A worker is gone, and the queue has handed out all messages up to this place. The worker that got this one has not
   * claimed it: if it is the one that is gone, the queue would hand it out again only after the ack wait.
   */
  handedOut(place: number): void {
    if (!this.isHeld && this.#place !== undefined && this.#place <= place) this.#publishAnyway();
  }

  /**
   * The watchdog: no worker holds the job. `queued`: its message is in the queue. Then a worker will take it, and the
   * store is read only now and then, because a notification may be lost.
   */
  look(queued: boolean): void {
    if (this.isHeld) return;
    const waits = queued || (this.#sent?.received === true && this.#ports.isPresent(this.#sent.to));
    this.#looks += 1;
    if (!waits || this.#looks % readEvery === 0) return void this.#check();
    this.#unheldBecause = this.#ports.whyUnheld();
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
    this.#anyway = true;
    clearTimeout(this.#later);
    this.#later = undefined;
    void this.#check();
  }

  /** No worker holds the job: the queue may have lost it, or no worker can run it. */
  async #lookForWorkers(): Promise<void> {
    await this.#publishIfAbsent();
    this.#unheldBecause = this.#ports.whyUnheld();
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
    const sender = senderOf(message.subject);
    const { answer, alone } = this.#answer(sender, request);
    if (answer === 'go') this.#uses.claimed(sender.instance, request.incarnation, Date.now());
    faultPoint('claim.answer', {
      stage: this.#ports.stage,
      answer,
      iteration: this.#ports.iteration,
      runId: this.#ports.runId,
    });
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
      if (!this.#ports.mayClaim(sender)) return { answer: 'held', alone: false };
      const chosen = this.#ports.choose(this.#declined);
      if (chosen?.only === true && placeWords(chosen.to) !== placeWords(sender)) {
        // The message that this worker got is dropped.
        if (!this.#isSentTo(chosen.to, chosen.to.incarnation)) this.#publishAnyway();
        return { answer: 'drop', alone: false };
      }
    }
    return this.#wait.claim({ ...request, worker: this.#ports.nameOf(sender) }, Date.now());
  }

  #go(claimant: WorkerIdentity, alone: boolean): ClaimReply {
    const { secretOf, holdersFor, scorer: scorerOf, claimed } = this.#ports;
    claimed(claimant);
    const weights = holdersFor && { weights: holdersFor(claimant) };
    const scorer = scorerOf?.();
    const first = this.#isFirst && { first: true as const };
    this.#isFirst = false;
    return {
      v: wireVersion,
      answer: 'go',
      alone,
      secret: secretOf(claimant),
      ...weights,
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
      const secret = this.#ports.secretOf({ ...sender, incarnation: event.incarnation });
      if (!isFailureProven(event, secret))
        return console.error(
          `${message.subject}: dropped a failure whose sender cannot prove that it had claimed the job`,
        );
    }
    if (event.type === 'received' && this.#sent !== undefined && this.#isSentTo(sender)) this.#sent.received = true;
    if (event.type === 'queued' && this.#sent !== undefined && this.#isSentTo(sender)) this.#decline(this.#sent.to);
    const holder = this.#wait.holder;
    const verdict = this.#wait.event(event, this.#ports.nameOf(sender), Date.now());
    if (holder !== undefined && this.#wait.holder === undefined) this.#uses.lost(Date.now());
    this.#report();
    if (verdict.type === 'give-up') this.#fail(verdict.error);
    else if (verdict.type === 'read-result') void this.#check();
    else if (verdict.type === 'publish') this.#publishLater(verdict.delayMs);
  }

  /** Hands the journal to the worker that holds the job. Nobody else gets an answer. */
  #handOver(readJournal: NonNullable<SessionPorts['readJournal']>): void {
    const { nc, runId, jobId, nameOf } = this.#ports;
    const questions = nc.subscribe(journalReadsOf(runId, jobId), {
      callback: (error, message) => {
        const asked = error === null ? readMessage(message, journalRequest) : undefined;
        const asker = nameOf(senderOf(message.subject));
        if (asked === undefined) return sayDropped(message.subject);
        if (this.#wait.isHeldBy(asker, asked.incarnation)) void this.#answerFrom(readJournal, message, asked.from);
        else console.error(`${message.subject}: ${asker} does not hold the job, and gets no journal`);
      },
    });
    this.#closers.push(() => questions.unsubscribe());
  }

  /** The journal only saves work: without it the worker decodes from the start. */
  async #answerFrom(readJournal: NonNullable<SessionPorts['readJournal']>, message: Msg, from: number): Promise<void> {
    const entries = await readJournal(from).catch((error: unknown): JournalReply => {
      console.error(`${message.subject}: the journal cannot be read: ${errorToJson(error).message}`);
      return { v: journalVersion, entries: [] };
    });
    message.respond(JSON.stringify(entries));
  }

  /** Publishes after a delay. The watchdog does not publish before that. */
  #publishLater(delayMs: number): void {
    clearTimeout(this.#later);
    this.#later = setTimeout(() => {
      this.#later = undefined;
      void this.#check();
    }, delayMs);
  }

  /** Rejects the waiters if this is a job of the run: their workflow has stopped waiting for it. */
  leave(runId: string): void {
    if (this.#ports.runId === runId) this.#fail(atRest(runId));
  }

  #report(): void {
    const queued = this.#wait.queuedBecause ?? (this.isHeld ? undefined : this.#unheldBecause);
    for (const { options } of this.#waiters) options.onProgress?.(this.#wait.progress, queued);
  }

  #succeed(result: JobResult<Stage>): void {
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
    this.#ports.over();
  }
}

function sayDropped(subject: string): void {
  console.error(`${subject}: dropped a message that does not match this version's schema`);
}
