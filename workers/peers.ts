/** What a worker knows about the other workers, from their presence messages. */
import type { Presence } from '../core/wire/messages.ts';

export class Peers {
  readonly #own: string;
  readonly #maxAgeMs: number;
  readonly #heard = new Map<string, { readonly entry: Presence; readonly at: number }>();

  /** `own`: this worker's incarnation, which is no peer of itself. A peer that is silent for `maxAgeMs` is gone. */
  constructor(own: string, maxAgeMs: number) {
    this.#own = own;
    this.#maxAgeMs = maxAgeMs;
  }

  heard(entry: Presence, now: number): void {
    if (entry.incarnation !== this.#own) this.#heard.set(entry.worker, { entry, at: now });
  }

  /** Is there another trainer that works for this run and takes its jobs? */
  trains(runId: string, now: number): boolean {
    return [...this.#heard.values()].some(
      ({ entry, at }) => entry.lease === runId && takesJobs(entry) && now - at < this.#maxAgeMs,
    );
  }
}

const takesJobs = ({ state }: Presence) => state === 'ready' || state === 'busy';
