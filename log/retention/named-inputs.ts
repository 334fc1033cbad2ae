/**
 * Which models and datasets a run or a schedule names. One namer per folder is enough, and it is stored: the next pass
 * only checks that this namer still exists, however many runs and recipe revisions the store holds.
 */
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { folderName, keys } from '../../core/records/keys.ts';
import { revisionRecord, scheduleRecord } from '../../core/records/schema.ts';
import type { RunInputs } from '../../core/records/schema.ts';
import { newestListed, newestOf } from '../objects/dense.ts';
import { needRecord } from '../objects/records.ts';

/** Maps a folder (`models/<digest>/`) to a run or a schedule that names it. */
export type NamedBy = Readonly<Record<string, string>>;

/** Folders that a run reads. */
export function foldersOf({ model, reference, teacher, rewardModel, train, validation }: RunInputs): string[] {
  const present = (digest: Digest | undefined) => digest !== undefined;
  return [
    ...[model, reference, teacher, rewardModel].filter(present).map(keys.modelFolder),
    ...[train, validation].filter(present).map(keys.datasetFolder),
  ];
}

/** The folders that have a namer, each with it. `known`: the result of an earlier pass. */
export async function findNamers(store: Store, folders: readonly string[], known: NamedBy): Promise<NamedBy> {
  const namers = new Namers(store);
  const found: Record<string, string> = {};
  for (const folder of folders) {
    const namer = known[folder];
    if (namer !== undefined && (await namers.names(namer, folder))) found[folder] = namer;
  }
  const left = new Set(folders.filter((folder) => found[folder] === undefined));
  for await (const { namer, folder } of left.size === 0 ? [] : namers.all()) {
    if (!left.delete(folder)) continue;
    found[folder] = namer;
    if (left.size === 0) break;
  }
  return found;
}

/** Possible namers: runs by the key of a recipe revision, schedules by the key of their newest record. */
class Namers {
  readonly #store: Store;
  /** The folders that each namer names, as far as read. */
  readonly #folders = new Map<string, readonly string[]>();

  constructor(store: Store) {
    this.#store = store;
  }

  async names(namer: string, folder: string): Promise<boolean> {
    const folders = this.#folders.get(namer) ?? (await this.#look(namer));
    this.#folders.set(namer, folders);
    return folders.includes(folder);
  }

  /**
   * All runs that were not deleted and all schedules that were not removed. A listing may lag by less than the grace
   * period.
   */
  async *all(): AsyncGenerator<{ readonly namer: string; readonly folder: string }> {
    for (const runId of await this.#namesIn(keys.runs)) {
      if ((await this.#store.head(keys.tombstone(runId))) !== undefined) continue;
      const revision = (n: number) => keys.revision(runId, n);
      for (let n = await newestListed(this.#store, keys.revisions(runId), revision); n > 0; n--) {
        const { inputs } = (await needRecord(this.#store, revision(n), revisionRecord)).record;
        for (const folder of foldersOf(inputs)) yield { namer: revision(n), folder };
      }
    }
    for (const schedule of await this.#namesIn(keys.schedules)) {
      const namer = `${keys.schedules}${schedule}/`;
      for (const folder of await this.#ofSchedule(schedule)) yield { namer, folder };
    }
  }

  async #namesIn(folder: string): Promise<string[]> {
    return (await this.#store.children(folder)).map(folderName);
  }

  /** The folders that a known namer names now; none when it was deleted. */
  async #look(namer: string): Promise<readonly string[]> {
    const [root, name = '', ...rest] = namer.split('/');
    if (`${root}/` === keys.schedules) return this.#ofSchedule(name);
    const n = Number(rest.at(-1)?.replace('.json', ''));
    if (`${root}/` !== keys.runs || namer !== keys.revision(name, n)) return [];
    if ((await this.#store.head(keys.tombstone(name))) !== undefined) return [];
    if ((await this.#store.head(namer)) === undefined) return [];
    return foldersOf((await needRecord(this.#store, namer, revisionRecord)).record.inputs);
  }

  async #ofSchedule(schedule: string): Promise<readonly string[]> {
    const newest = await newestOf(this.#store, (n) => keys.schedule(schedule, n));
    if (newest === 0) return [];
    const { state, definition } = (await needRecord(this.#store, keys.schedule(schedule, newest), scheduleRecord))
      .record;
    return state === 'removed' ? [] : foldersOf(definition.inputs);
  }
}
