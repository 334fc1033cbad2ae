/**
 * The state of a connection, for requests that must not wait for a timeout. A request to a server that has gone is
 * never answered; with a link the caller learns that at once.
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

  /** The result of the work; rejects with `NatsLost` when the connection is lost first. */
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

  /** Calls the listener on every reconnect; the returned function removes it. */
  onBack(act: () => void): () => void {
    this.#back.add(act);
    return () => void this.#back.delete(act);
  }

  /** Resolves when connected: now, or on the next reconnect. */
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

/** The link of a connection; there is one per connection. */
export function linkOf(nc: NatsConnection): Link {
  let link = links.get(nc);
  if (link === undefined) {
    link = new Link(nc);
    links.set(nc, link);
  }
  return link;
}
