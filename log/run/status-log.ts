/** Reads a run's status entries: a dense sequence of small records, which status.ts writes. The newest one is valid. */
import { errorToJson } from '../../core/errors.ts';
import type { RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { isDamage } from '../../core/records/damage.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, statusEntry } from '../../core/records/schema.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import { newestListed, newestNear } from '../objects/dense.ts';
import { needRecord } from '../objects/records.ts';

/** The status entries of one run. It caches the newest one that it has read, because entries never change. */
export class StatusLog {
  readonly #store: Store;
  readonly #runId: RunId;
  #known: StatusEntry | undefined;

  constructor(store: Store, runId: RunId) {
    this.#store = store;
    this.#runId = runId;
  }

  /** Clears the cache: the next call finds the newest entry by a listing. */
  forget(): void {
    this.#known = undefined;
  }

  /**
   * The newest status entry; undefined before the run was started. An unreadable one counts as a pause, because the
   * desired state is unknown.
   */
  async newest(): Promise<StatusEntry | undefined> {
    const key = (n: number) => keys.status(this.#runId, n);
    const known = this.#known;
    const n =
      known === undefined
        ? await newestListed(this.#store, keys.statuses(this.#runId), key)
        : await newestNear(this.#store, key, known.n);
    if (n === 0 || n !== known?.n) this.#known = n === 0 ? undefined : await this.#read(n);
    return this.#known;
  }

  async #read(n: number): Promise<StatusEntry> {
    try {
      return (await needRecord(this.#store, keys.status(this.#runId, n), statusEntry)).record;
    } catch (error) {
      if (!isDamage(error)) throw error;
      const at = new Date(0).toISOString();
      const reason = errorToJson(error);
      return { format: recordFormat, runId: this.#runId, n, at, wish: 'pause', state: 'paused', reason };
    }
  }
}
