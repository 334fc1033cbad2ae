/** What the jobs of a process read: stores, logs, datasets, and copies of models. */
import type { Digest } from '../../../core/ids.ts';
import type { Store } from '../../../core/ports/store.ts';
import { checkedByMainThread, storesByUrl } from '../../../infra/store/open-stores.ts';
import { watchedStore } from '../../../infra/store/watched.ts';
import { readDataset } from '../../../log/inputs/datasets.ts';
import { modelFolder, readModelManifest } from '../../../log/inputs/model-facts.ts';
import type { ModelPart } from '../../../log/inputs/model-facts.ts';
import { RunLog } from '../../../log/run/run-log.ts';
import type { Dataset } from '../../../models/dataset-rows.ts';
import { OpenDatasets } from '../../../models/open-datasets.ts';
import type { JobContext } from '../job/context.ts';

export class HostFiles {
  readonly #cache: string;
  readonly #tick: () => void;
  readonly #stores = storesByUrl(checkedByMainThread);
  readonly #datasets = new OpenDatasets(readDataset);
  readonly #watched = new WeakMap<Store, Store>();

  /** `cache`: folder for copies of remote models. `tick`: called for every piece that is read or written. */
  constructor(cache: string, tick: () => void) {
    this.#cache = cache;
    this.#tick = tick;
  }

  /** Every piece that is streamed from or to it counts as progress. */
  async store(url: string): Promise<Store> {
    const store = await this.#stores(url);
    const watched = this.#watched.get(store) ?? watchedStore(store, this.#tick);
    this.#watched.set(store, watched);
    return watched;
  }

  async log(context: JobContext): Promise<RunLog> {
    return new RunLog(await this.store(context.store), context.runId);
  }

  async dataset(context: JobContext, digest: Digest): Promise<Dataset> {
    return this.#datasets.open(await this.store(context.store), digest);
  }

  async modelFolder(context: Pick<JobContext, 'store'>, model: Digest, part: ModelPart = 'all'): Promise<string> {
    return modelFolder(await this.store(context.store), model, this.#cache, part, this.#tick);
  }

  /** Names of a model's files. */
  async modelFiles(context: JobContext, model: Digest): Promise<readonly string[]> {
    return (await readModelManifest(await this.store(context.store), model)).map(({ name }) => name);
  }
}
