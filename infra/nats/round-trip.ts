/** How long the message server needs to answer, as this process sees it. */
import type { NatsConnection } from '@nats-io/nats-core';
import { linkOf } from './link.ts';

const firstPings = 3;
const everyMs = 5_000;
/** Pings of which the shortest counts: a busy event loop, or a lost packet, only makes others longer. */
const mostKept = 12;

export class RoundTrip {
  readonly #nc: NatsConnection;
  #kept: number[] = [];

  private constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  /** Measured now, and again while the connection lives. */
  static async of(nc: NatsConnection): Promise<RoundTrip> {
    const one = new RoundTrip(nc);
    for (let i = 0; i < firstPings; i++) await one.#ping();
    const timer = setInterval(() => (nc.isClosed() ? clearInterval(timer) : void one.#ping()), everyMs);
    timer.unref();
    return one;
  }

  /** In ms, to a tenth; undefined before the first answer. */
  get ms(): number | undefined {
    return this.#kept.length === 0 ? undefined : Math.round(10 * Math.min(...this.#kept)) / 10;
  }

  /** A lost connection has no round trip. */
  async #ping(): Promise<void> {
    const began = performance.now();
    await linkOf(this.#nc)
      .orLost(this.#nc.flush())
      .then(
        () => (this.#kept = [...this.#kept, performance.now() - began].slice(-mostKept)),
        () => undefined,
      );
  }
}
