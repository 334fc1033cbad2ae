/** Decides for the newest weights of each run which process gets them from which one. core/wire/weights.ts says how. */
import type { Digest } from '../../../core/ids.ts';
import { holdersBefore } from '../../../core/wire/weights.ts';

interface Order {
  readonly publication: string;
  readonly urls: string[];
}

export class WeightsOrders {
  readonly #orders = new Map<string, Order>();

  /** New weights of a run, by the digest of their publication, which the first of these processes has in memory. */
  begin(runId: string, publication: Digest, urls: readonly string[]): readonly string[] {
    const order = { publication, urls: [...new Set(urls)] };
    this.#orders.set(runId, order);
    return order.urls;
  }

  /**
   * The holders that a process asks for these weights. One that is not in the order yet, because it came later, becomes
   * the last. Without a URL nobody asks it in turn. `holder`: who has them, when nobody has asked for them before.
   */
  holdersFor(runId: string, publication: string, url: string | undefined, holder: string | undefined): string[] {
    const known = this.#orders.get(runId);
    const isKnown = known !== undefined && known.publication === publication;
    const order = isKnown ? known : { publication, urls: holder === undefined ? [] : [holder] };
    this.#orders.set(runId, order);
    if (url === undefined) return holdersBefore(order.urls, order.urls.length);
    if (!order.urls.includes(url)) order.urls.push(url);
    return holdersBefore(order.urls, order.urls.indexOf(url));
  }

  /** The run is paused or has ended. */
  forget(runId: string): void {
    this.#orders.delete(runId);
  }
}
