/** Datasets that a thread reads rows of: the last ones stay open, and their last used blocks in memory. */
import type { Digest } from '../core/ids.ts';
import type { Store } from '../core/ports/store.ts';
import { BlockCache, openDataset } from './dataset-rows.ts';
import type { Dataset, StoredDataset } from './dataset-rows.ts';

/** One of format 1 is in memory while it is open. */
const keptOpen = 2;
const cacheBytes = 64 * 1024 * 1024;

/** Finds a dataset's files in a store, checked against its digest. Throws PauseError `DamagedDataset`. */
export type ReadDataset = (store: Store, digest: Digest) => Promise<StoredDataset>;

export class OpenDatasets {
  readonly #read: ReadDataset;
  readonly #cache = new BlockCache(cacheBytes);
  /** Datasets in the order of their last use. */
  readonly #open = new Map<string, Promise<Dataset>>();

  constructor(read: ReadDataset) {
    this.#read = read;
  }

  /** Throws PauseError `DamagedDataset`. */
  open(store: Store, digest: Digest): Promise<Dataset> {
    const name = `${store.place} ${digest}`;
    const opening = this.#open.get(name) ?? this.#read(store, digest).then((found) => openDataset(found, this.#cache));
    this.#open.delete(name);
    this.#open.set(name, opening);
    opening.catch(() => this.#open.delete(name));
    for (const old of [...this.#open.keys()].slice(0, -keptOpen)) this.#open.delete(old);
    return opening;
  }
}
