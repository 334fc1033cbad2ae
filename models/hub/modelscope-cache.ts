/**
 * Models in the cache of ModelScope's Python library: `models/<org>--<name>/snapshots/<revision>/`, and until version
 * 1.37 `hub/models/<org>/<name>/`, or without `hub/` where MODELSCOPE_CACHE was set. The older layout writes `___` for
 * a dot in the name, keeps one revision of a model, and names it in the file `.mv`.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { HubModel, SharedCache } from './hub.ts';
import { lacking, type Snapshot } from './snapshot.ts';

export class ModelScopeCache implements SharedCache {
  readonly #folder: string | undefined;

  /** undefined: there is no such cache. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** The first whole folder of the revision, else the first that is there. */
  async snapshotOf(model: HubModel): Promise<Snapshot | undefined> {
    const found: Snapshot[] = [];
    for (const folder of await this.#foldersOf(model)) {
      const names = await readdir(folder).catch(() => []);
      if (names.length > 0) found.push({ commit: model.revision, folder, lacks: await lacking(folder) });
    }
    return found.find(({ lacks }) => lacks.length === 0) ?? found[0];
  }

  async snapshotAt(name: string, commit: string): Promise<Snapshot | undefined> {
    return this.snapshotOf({ name, revision: commit });
  }

  async #foldersOf({ name, revision }: HubModel): Promise<readonly string[]> {
    if (this.#folder === undefined) return [];
    const models = join(this.#folder, 'models');
    const [org = '', rest = ''] = name.split('/');
    const old = [models, join(this.#folder, 'hub/models')].map((at) => join(at, org, rest.replaceAll('.', '___')));
    const revisions = await Promise.all(old.map(revisionOf));
    return [join(models, `${org}--${rest}`, 'snapshots', revision), ...old.filter((_, i) => revisions[i] === revision)];
  }
}

/** A folder without the file is of the default branch, which is what the library fetches unless told otherwise. */
async function revisionOf(folder: string): Promise<string> {
  const text = await readFile(join(folder, '.mv'), 'utf8').catch(() => '');
  return /Revision:([^,\s]+)/.exec(text)?.[1] ?? 'master';
}
