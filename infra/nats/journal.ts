/**
 * A worker's side of the rollout journal. It writes entries without waiting and reads those of a job. A lost entry is
 * written again, or its tokens are decoded again.
 */
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { journalOfJob, journalStream, journalSubject } from '../../core/wire/journal.ts';
import type { WorkerPlace } from '../../core/wire/worker-identity.ts';
import { faultPoint } from '../faults/index.ts';
import { askToDeclare } from './declarations.ts';

/** When more bytes than this are in flight to the server, new entries are dropped instead of buffered. */
const maxOnTheWay = 16 * 1024 * 1024;
/** An entry that is not stored within this time counts as lost. */
const storedMs = 3_000;
/** Reading a journal for longer than this costs more than decoding again. */
const readMs = 5_000;

export interface JournalEvents {
  /** Entries were or may have been lost: every live sample should be written again from its first token. */
  readonly lost: () => void;
}

export class Journal {
  readonly #nc: NatsConnection;
  readonly #js: JetStreamClient;
  readonly #place: WorkerPlace;
  readonly #events: JournalEvents;
  #connected = true;
  #manager: JetStreamManager | undefined;
  #opening: Promise<JetStreamManager> | undefined;
  readonly #unsettled = new Set<Promise<void>>();
  #onTheWay = 0;
  /** An entry was dropped or not stored, and the caller does not know yet. */
  #lost = false;

  constructor(nc: NatsConnection, place: WorkerPlace, events: JournalEvents) {
    this.#nc = nc;
    this.#js = jetstream(nc);
    this.#place = place;
    this.#events = events;
    void this.#watch();
  }

  /** Never waits, never throws. */
  publish(runId: string, jobId: string, text: string, tokens: number): void {
    const size = Buffer.byteLength(text);
    if (this.#manager === undefined || this.#nc.isClosed() || this.#onTheWay + size > maxOnTheWay) {
      this.#lost = true;
      if (this.#connected) this.#open().then(() => this.#tellOfLoss(), ignored);
      return;
    }
    faultPoint('journal.before', { tokens });
    this.#onTheWay += size;
    const stored = this.#js
      .publish(journalSubject(runId, jobId, this.#place), text, { timeout: storedMs, retries: 0 })
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

  /** Entries of a job, oldest first; none when they cannot be read in time. */
  async read(runId: string, jobId: string): Promise<string[]> {
    const until = performance.now() + readMs;
    const texts: string[] = [];
    try {
      const manager = await this.#open();
      const next_by_subj = journalOfJob(runId, jobId);
      for (let seq = 1; performance.now() < until; ) {
        const message = await manager.direct.getMessage(journalStream, { seq, next_by_subj });
        if (message === null) break;
        texts.push(message.string());
        seq = message.seq + 1;
      }
    } catch {
      this.#manager = undefined; // an incomplete read is fine: each entry that was read helps its own sample
    }
    return texts;
  }

  #open(): Promise<JetStreamManager> {
    if (this.#manager !== undefined) return Promise.resolve(this.#manager);
    if (this.#opening !== undefined) return this.#opening;
    const opening = this.#declared().finally(() => this.#opening === opening && (this.#opening = undefined));
    this.#opening = opening;
    return opening.then((manager) => (this.#manager = manager));
  }

  async #declared(): Promise<JetStreamManager> {
    await askToDeclare(this.#nc, this.#place, { what: 'journal' });
    return jetstreamManager(this.#nc, { checkAPI: false });
  }

  #tellOfLoss(): void {
    if (!this.#lost || this.#manager === undefined || this.#onTheWay > 0) return;
    this.#lost = false;
    this.#events.lost();
  }

  /** The server may come back without its stored data. */
  async #watch(): Promise<void> {
    for await (const { type } of this.#nc.status()) {
      if (type === 'disconnect') {
        this.#connected = false;
        this.#manager = undefined;
        this.#opening = undefined; // no answer will come for it
      }
      if (type !== 'reconnect') continue;
      this.#connected = true;
      this.#lost = true;
      this.#open().then(() => this.#tellOfLoss(), ignored);
    }
  }
}

/** Removes the entries of a finished job; those that stay expire. For the control process, which knows that it has finished. */
export async function purgeJournal(jsm: JetStreamManager, runId: string, jobId: string): Promise<void> {
  await jsm.streams.purge(journalStream, { filter: journalOfJob(runId, jobId) }).catch(ignored);
}

/** The journal only saves work: a worker that cannot write or read it decodes again. */
const ignored = () => undefined;
