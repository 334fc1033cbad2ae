/**
 * A worker's side of the rollout journal. It writes entries without waiting, and asks the control process for those of
 * a job that it has claimed. A lost entry is written again, or its tokens are decoded again.
 */
import { jetstream } from '@nats-io/jetstream';
import type { JetStreamClient } from '@nats-io/jetstream';
import { headers } from '@nats-io/nats-core';
import type { MsgHdrs, NatsConnection } from '@nats-io/nats-core';
import {
  journalHeaders,
  journalReadSubject,
  journalReply,
  journalSubject,
  journalVersion,
} from '../../../core/wire/journal.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import { messageProof } from '../../../log/objects/result-proof.ts';
import { askToDeclare } from '../declarations.ts';
import { readMessage } from '../incoming.ts';
import { linkOf } from '../link.ts';

/** The limit of bytes in flight to the server; above it new entries are dropped instead of buffered. */
const maxOnTheWay = 16 * 1024 * 1024;
/** An entry that is not stored within this time counts as lost. */
const storedMs = 3_000;
/** Reading a journal for longer than this costs more than decoding again. */
const readMs = 5_000;

export interface JournalEvents {
  /** Entries were or may have been lost: every live sample should be written again from its first token. */
  readonly lost: () => void;
}

/** A job, and the secret of its claim. */
export interface ClaimedJob {
  readonly runId: string;
  readonly jobId: string;
  readonly secret: string;
}

export class Journal {
  readonly #nc: NatsConnection;
  readonly #js: JetStreamClient;
  readonly #identity: WorkerIdentity;
  readonly #events: JournalEvents;
  #connected = true;
  /** The stream exists. */
  #isOpen = false;
  #opening: Promise<void> | undefined;
  readonly #unsettled = new Set<Promise<void>>();
  #onTheWay = 0;
  /** An entry was dropped or not stored, and the caller does not know yet. */
  #lost = false;

  constructor(nc: NatsConnection, identity: WorkerIdentity, events: JournalEvents) {
    this.#nc = nc;
    this.#js = jetstream(nc);
    this.#identity = identity;
    this.#events = events;
    void this.#watch();
  }

  /** Never waits, never throws. */
  publish({ runId, jobId, secret }: ClaimedJob, text: string, tokens: number): void {
    const size = Buffer.byteLength(text);
    if (!this.#isOpen || this.#nc.isClosed() || this.#onTheWay + size > maxOnTheWay) {
      this.#lost = true;
      if (this.#connected) this.opened().then(() => this.#tellOfLoss(), ignored);
      return;
    }
    faultPoint('journal.before', { tokens });
    this.#onTheWay += size;
    const stored = this.#js
      .publish(journalSubject(runId, jobId, this.#identity), text, {
        headers: this.#proof(secret, text),
        timeout: storedMs,
        retries: 0,
      })
      .then(
        () => faultPoint('journal.after', { tokens }),
        () => void (this.#lost = true),
      );
    this.#unsettled.add(stored);
    void stored.finally(() => {
      this.#unsettled.delete(stored);
      this.#onTheWay -= size;
      this.#tellOfLoss();
    });
  }

  /** Resolves when the server has stored everything that was published, or does not answer in time. */
  async settled(): Promise<void> {
    await Promise.all(this.#unsettled);
  }

  /** Entries of a job that this worker has claimed, oldest first; none when they cannot be read in time. */
  async read(runId: string, jobId: string): Promise<string[]> {
    const until = performance.now() + readMs;
    const texts: string[] = [];
    try {
      await this.opened();
      for (let from: number | undefined = 1; from !== undefined && performance.now() < until; ) {
        const reply = await this.#ask(runId, jobId, from);
        texts.push(...(reply?.entries ?? []));
        from = reply?.next;
      }
    } catch {
      this.#isOpen = false; // an incomplete read is fine: each entry that was read helps its own sample
    }
    return texts;
  }

  async #ask(runId: string, jobId: string, from: number) {
    const request = JSON.stringify({ v: journalVersion, incarnation: this.#identity.incarnation, from });
    const subject = journalReadSubject(runId, jobId, this.#identity);
    return readMessage(
      await linkOf(this.#nc).orLost(this.#nc.request(subject, request, { timeout: readMs })),
      journalReply,
    );
  }

  #proof(secret: string, text: string): MsgHdrs {
    const proof = headers();
    proof.set(journalHeaders.incarnation, this.#identity.incarnation);
    proof.set(journalHeaders.proof, messageProof(secret, text));
    return proof;
  }

  /** Resolves when the stream exists; entries that are published before that are lost. */
  opened(): Promise<void> {
    if (this.#isOpen) return Promise.resolve();
    if (this.#opening !== undefined) return this.#opening;
    const opening = askToDeclare(this.#nc, this.#identity, { what: 'journal' })
      .then(() => void (this.#isOpen = true))
      .finally(() => this.#opening === opening && (this.#opening = undefined));
    this.#opening = opening;
    return opening;
  }

  #tellOfLoss(): void {
    if (!this.#lost || !this.#isOpen || this.#onTheWay > 0) return;
    this.#lost = false;
    this.#events.lost();
  }

  /** The server may come back without its stored data. */
  async #watch(): Promise<void> {
    for await (const { type } of this.#nc.status()) {
      if (type === 'disconnect') {
        this.#connected = false;
        this.#isOpen = false;
        this.#opening = undefined; // no answer will come for it
      }
      if (type !== 'reconnect') continue;
      this.#connected = true;
      this.#lost = true;
      this.opened().then(() => this.#tellOfLoss(), ignored);
    }
  }
}

/** The journal only saves work: a worker that cannot write or read it decodes again. */
const ignored = () => undefined;
