/**
 * The way of one job's message: it is with the worker to which it was sent, in the queue, or still to be sent. There is
 * no I/O and no clock here: the session (wait-session.ts) says what happened, carries the message and keeps the timers.
 *
 * ```
 *                     goesTo(worker)                goesTo(undefined), isInQueue()
 *   WITH A WORKER ◀────────────────── TO BE SENT ──────────────────▶ IN THE QUEUE
 *     │                                 ▲    ▲                          │
 *     │ not confirmed, declined,        │    │ handed out to a worker   │
 *     └─ its process is gone ───────────┘    └─ that is gone ───────────┘
 * ```
 *
 * A job is sent again even while an older message is in a queue: the second claim gets "held", or finds the result.
 */
import type { WorkerIdentity, WorkerPlace } from '../../../core/wire/worker-identity.ts';
import { identityText } from '../../../core/wire/worker-identity.ts';
import type { Choice } from './choices.ts';

/** How often a job is sent to the worker that has its state, while that one is present and does not confirm it. */
export const mostSends = 3;

interface Sent {
  readonly to: WorkerIdentity;
  readonly times: number;
  /** The worker has confirmed that it has the message. */
  received: boolean;
}

/** The state of one job's message. */
export class Sending {
  readonly #declinedMs: number;
  /** Workers that did not take it when it was sent to them, and until when they are left out. */
  readonly #declined = new Map<string, number>();
  #sent: Sent | undefined;
  /** The place of its newest message in the queue. */
  #place: number | undefined;
  #isUrgent = false;
  #isDelayed = false;
  #isFirst = true;

  /** `declinedMs`: for how long a worker that did not take the job is not asked again. */
  constructor(declinedMs: number) {
    this.#declinedMs = declinedMs;
  }

  /** Must the job be sent even when an older message is in the queue? */
  get isUrgent(): boolean {
    return this.#isUrgent;
  }

  /** The job failed and waits before it is tried again: until then only an urgent reason sends it. */
  get isDelayed(): boolean {
    return this.#isDelayed;
  }

  /** The place of its newest message in the queue; undefined when the job was sent to a worker. */
  get place(): number | undefined {
    return this.#place;
  }

  /** The worker that has confirmed the message, as far as is known. */
  get receivedBy(): WorkerIdentity | undefined {
    return this.#sent?.received === true ? this.#sent.to : undefined;
  }

  /** Was it sent to this worker? With `incarnation`: to this process of it? */
  isSentTo({ instance, worker }: WorkerPlace, incarnation?: string): boolean {
    const to = this.#sent?.to;
    return (
      to?.instance === instance && to.worker === worker && (incarnation === undefined || to.incarnation === incarnation)
    );
  }

  /** Names (`identityText`) of the workers that did not take it a short time ago. */
  declined(now: number): ReadonlySet<string> {
    for (const [name, until] of this.#declined) if (until <= now) this.#declined.delete(name);
    return new Set(this.#declined.keys());
  }

  /** An earlier control process has published it, so a worker may have had it already. */
  wasInQueue(place: number): void {
    this.#isFirst = false;
    this.#place = place;
  }

  /** The message goes to this worker; undefined: to the queue. */
  goesTo(worker: WorkerIdentity | undefined): void {
    this.#isUrgent = false;
    this.#place = undefined;
    const times = this.#sent?.to.incarnation === worker?.incarnation ? (this.#sent?.times ?? 0) : 0;
    this.#sent = worker && { to: worker, received: false, times: times + 1 };
  }

  /** The queue has taken the message. */
  isInQueue(place: number): void {
    this.#place = place;
  }

  /** A worker says that it has received the message. */
  received(by: WorkerPlace): void {
    if (this.#sent !== undefined && this.isSentTo(by)) this.#sent.received = true;
  }

  /** A worker says that it does not run the job now. True when the job was sent to it. */
  refused(by: WorkerPlace, now: number): boolean {
    if (this.#sent === undefined || !this.isSentTo(by)) return false;
    this.#decline(this.#sent, now);
    return true;
  }

  /**
   * The time is over in which the chosen worker should have confirmed the message. True when the job must be sent
   * again: to the same worker if that one alone has the job's state, because it may only be slow, and another one would
   * need more time than a second question; else to others.
   */
  unconfirmed({ to, only }: Choice, isPresent: boolean, now: number): boolean {
    const sent = this.#sent;
    if (sent === undefined || sent.received || !this.isSentTo(to, to.incarnation)) return false;
    if (!only || !isPresent || sent.times >= mostSends) this.#decline(sent, now);
    return true;
  }

  /** Was it sent to the process that this one replaces? */
  isReplaced({ incarnation, ...place }: WorkerIdentity): boolean {
    return this.isSentTo(place) && !this.isSentTo(place, incarnation);
  }

  /** Has the queue handed out the job's message, when it has handed out all messages up to `place`? */
  isHandedOut(place: number): boolean {
    return this.#place !== undefined && this.#place <= place;
  }

  /** The job must be sent at once. */
  hurry(): void {
    this.#isUrgent = true;
    this.#isDelayed = false;
  }

  /** The job is sent again only after a delay, which ends with `delayOver` or `hurry`. */
  delay(): void {
    this.#isDelayed = true;
  }

  delayOver(): void {
    this.#isDelayed = false;
  }

  /** A worker starts the job. True for the first one that has it, as far as this process knows. */
  started(): boolean {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    return isFirst;
  }

  #decline({ to }: Sent, now: number): void {
    this.#declined.set(identityText(to), now + this.#declinedMs);
    this.#sent = undefined;
  }
}
