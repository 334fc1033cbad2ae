/** Presence of workers: each worker writes its entry into a bucket whose entries expire. */
import { headers } from '@nats-io/nats-core';
import type { NatsConnection } from '@nats-io/nats-core';
import {
  presence,
  presenceEntrySubject,
  presenceKey,
  presenceSubject,
  presencesSubject,
  timings,
} from '../../../core/wire/messages.ts';
import type { Presence, Timing } from '../../../core/wire/messages.ts';
import { placeWords } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import { readMessage } from '../incoming.ts';
import { linkOf } from '../link.ts';
import { openPresence, presenceNames } from '../streams.ts';

/** Changes within this time are combined into one write. */
const writeAfterMs = 100;

/**
 * Writes this worker's entry at once, after every change, and three times in the time in which it expires, which is
 * that of near workers: far ones are only taken for gone later.
 */
export class PresenceBeacon {
  readonly #nc: NatsConnection;
  readonly #timing: Timing;
  readonly #describe: () => Presence;
  #timer: NodeJS.Timeout | undefined;
  #due: NodeJS.Timeout | undefined;

  constructor(nc: NatsConnection, timing: Timing, describe: () => Presence) {
    this.#nc = nc;
    this.#timing = timing;
    this.#describe = describe;
  }

  start(): void {
    linkOf(this.#nc).onBack(() => this.tell()); // the others may have taken it for gone
    const expiresMs = Math.min(this.#timing.presenceMs, timings.loopback.presenceMs);
    this.#timer = setInterval(() => this.tell(), expiresMs / 3);
    this.tell();
  }

  /**
   * Publishes to the control process at once and into the bucket soon; many changes in a row become one entry. Never
   * throws.
   */
  tell(): void {
    if (this.#nc.isClosed()) return;
    const entry = this.#describe();
    this.#nc.publish(presenceSubject(entry), JSON.stringify(entry));
    this.#due ??= setTimeout(() => this.#write(), writeAfterMs);
  }

  /** Presence is a hint: nobody waits for the write, and when one is lost the next one repeats it. */
  #write(): void {
    this.#due = undefined;
    if (this.#nc.isClosed()) return;
    const entry = this.#describe();
    this.#nc.publish(presenceEntrySubject(entry), JSON.stringify(entry));
  }

  stop(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#due);
    if (this.#nc.isClosed()) return;
    const deletion = headers();
    deletion.set('KV-Operation', 'DEL');
    this.#nc.publish(presenceEntrySubject(this.#describe()), '', { headers: deletion });
  }
}

/**
 * Calls the listener for every published entry. An entry that does not belong to its subject is dropped. Only control
 * processes and views listen: if workers did, presence would grow with the square of their number.
 */
export function watchPresence(nc: NatsConnection, onEntry: (entry: Presence) => void): void {
  nc.subscribe(presencesSubject, {
    callback: (error, message) => {
      const entry = error === null ? readMessage(message, presence) : undefined;
      if (entry !== undefined && presenceSubject(entry) === message.subject) onEntry(entry);
    },
  });
}

/**
 * Workers whose entries have not expired, by name. Rejects with `NatsLost` when the connection is lost during the read.
 */
export function listWorkers(nc: NatsConnection): Promise<Presence[]> {
  return linkOf(nc).orLost(readEntries(nc));
}

/** Removes the entry of a process that is gone; not that of the next process at its place. */
export async function forgetWorker(nc: NatsConnection, gone: WorkerIdentity): Promise<void> {
  try {
    const bucket = await linkOf(nc).orLost(openPresence(nc));
    if (bucket === undefined) return;
    const names = await linkOf(nc).orLost(presenceNames(nc));
    for (const name of names.filter((one) => one.endsWith(`.${placeWords(gone)}`))) {
      const found = await linkOf(nc).orLost(bucket.get(name));
      if (found?.operation !== 'PUT' || readMessage(found, presence)?.incarnation !== gone.incarnation) continue;
      await linkOf(nc).orLost(bucket.delete(name, { previousSeq: found.revision }));
    }
  } catch {
    return; // it expires by itself
  }
}

async function readEntries(nc: NatsConnection): Promise<Presence[]> {
  const bucket = await openPresence(nc);
  if (bucket === undefined) return [];
  const names = await presenceNames(nc);
  const entries = await Promise.all(names.sort().map((name) => bucket.get(name)));
  return entries.flatMap((entry) => {
    const found = entry?.operation === 'PUT' ? readMessage(entry, presence) : undefined;
    return found !== undefined && presenceKey(found) === entry?.key ? found : [];
  });
}
