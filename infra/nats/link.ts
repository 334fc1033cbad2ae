/**
 * The state of a connection, for those who must not wait out a timeout: a request that went to a server which is gone is
 * never answered, and who waits for its answer learns that at once.
 */
import type { NatsConnection } from '@nats-io/nats-core';
import { RetryableError } from '../../core/errors.ts';

export class Link {
  readonly #lost = new Set<(error: Error) => void>();
  readonly #back = new Set<() => void>();
  #connected = true;

  constructor(nc: NatsConnection) {
    void this.#follow(nc);
  }

  /** The work's outcome; rejects with `NatsLost` when the connection is lost before there is one. */
  async orLost<T>(work: Promise<T>): Promise<T> {
    let lose: (error: Error) => void = () => {};
    const lost = new Promise<never>((_, reject) => (lose = reject));
    this.#lost.add(lose);
    try {
      return await Promise.race([work, lost]);
    } finally {
      this.#lost.delete(lose);
    }
  }

  /** Called whenever the connection has come back; the answer ends it. */
  onBack(act: () => void): () => void {
    this.#back.add(act);
    return () => void this.#back.delete(act);
  }

  /** Resolves when there is a connection: now, or as soon as it is back. */
  connected(): Promise<void> {
    if (this.#connected) return Promise.resolve();
    return new Promise((resolve) => {
      const end = this.onBack(() => {
        end();
        resolve();
      });
    });
  }

  async #follow(nc: NatsConnection): Promise<void> {
    for await (const { type } of nc.status()) {
      if (type === 'disconnect')
        this.#lose(new RetryableError('NatsLost', 'the connection to NATS was lost before its answer came'));
      else if (type === 'reconnect') this.#return();
    }
  }

  #lose(error: Error): void {
    this.#connected = false;
    for (const reject of [...this.#lost]) reject(error);
  }

  #return(): void {
    this.#connected = true;
    for (const act of [...this.#back]) act();
  }
}

const links = new WeakMap<NatsConnection, Link>();

/** One per connection. */
export function linkOf(nc: NatsConnection): Link {
  let link = links.get(nc);
  if (link === undefined) {
    link = new Link(nc);
    links.set(nc, link);
  }
  return link;
}
