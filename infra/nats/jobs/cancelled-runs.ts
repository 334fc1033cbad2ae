/**
 * Cancelled runs, whose jobs must end. The workers are told once, in a message that a worker can miss, for instance
 * while it claims a job or has no connection. So claims for such a run are dropped, and a worker that reports progress
 * on one of its jobs is told again.
 *
 * A stack of several machines has several control processes. The run may go on in another one than that which has
 * cancelled it, so they tell each other.
 */
import type { NatsConnection, Subscription } from '@nats-io/nats-core';
import {
  cancelNote,
  cancelNotesSubject,
  claimsOf,
  eventsOf,
  jobEvent,
  leaseSubject,
  wireVersion,
} from '../../../core/wire/messages.ts';
import type { ClaimReply } from '../../../core/wire/messages.ts';
import { readMessage } from '../incoming.ts';

/**
 * Size of the list; the oldest runs are forgotten first. A worker that was away for longer has lost its jobs by the ack
 * wait.
 */
const keptRuns = 64;

const drop: ClaimReply = { v: wireVersion, answer: 'drop' };

export class CancelledRuns {
  readonly #nc: NatsConnection;
  readonly #runs = new Map<string, readonly Subscription[]>();

  readonly #process: string;

  /**
   * `process`: this control process; no other one of the stack has the same. `heard`: another one has cancelled a run.
   */
  constructor(nc: NatsConnection, process: string, heard: (runId: string) => void) {
    this.#nc = nc;
    this.#process = process;
    nc.subscribe(cancelNotesSubject, {
      callback: (error, message) => {
        const note = error === null ? readMessage(message, cancelNote) : undefined;
        if (note === undefined || note.from === process) return;
        if (!note.cancelled) return this.#forget(note.runId);
        this.#keep(note.runId);
        heard(note.runId);
      },
    });
  }

  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** Tells the workers now, and again when a worker shows that it has not heard. */
  add(runId: string): void {
    this.#keep(runId);
    this.#note(runId, true);
    this.#tell(runId);
  }

  /** The run goes on. */
  delete(runId: string): void {
    this.#forget(runId);
    this.#note(runId, false);
  }

  #note(runId: string, cancelled: boolean): void {
    this.#nc.publish(cancelNotesSubject, JSON.stringify({ v: wireVersion, from: this.#process, runId, cancelled }));
  }

  #keep(runId: string): void {
    this.#forget(runId);
    const claims = this.#nc.subscribe(claimsOf('*', runId, '*'), {
      callback: (error, message) => void (error === null && message.respond(JSON.stringify(drop))),
    });
    const events = this.#nc.subscribe(eventsOf(runId, '*'), {
      callback: (error, message) => {
        if (error === null && readMessage(message, jobEvent)?.type === 'progress') this.#tell(runId);
      },
    });
    this.#runs.set(runId, [claims, events]);
    for (const oldest of [...this.#runs.keys()].slice(0, -keptRuns)) this.#forget(oldest);
  }

  #forget(runId: string): void {
    for (const subscription of this.#runs.get(runId) ?? []) subscription.unsubscribe();
    this.#runs.delete(runId);
  }

  #tell(runId: string): void {
    this.#nc.publish(leaseSubject, JSON.stringify({ v: wireVersion, runId, cancelled: true }));
  }
}
