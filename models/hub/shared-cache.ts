/**
 * Models in the cache of Hugging Face's Python client: `models--<org>--<name>/refs/<revision>` holds a commit,
 * `snapshots/<commit>/` the files, as links to `blobs/`. They are used where they lie; nothing is written there.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type HubModel, isCommit, type SharedCache } from './hub.ts';
import { lacking, type Snapshot } from './snapshot.ts';

export class HuggingFaceCache implements SharedCache {
  readonly #folder: string | undefined;

  /** undefined: there is no such cache. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** The commit that the branch, tag or commit had when the model was last fetched; undefined when it never was. */
  async snapshotOf({ name, revision }: HubModel): Promise<Snapshot | undefined> {
    if (this.#folder === undefined) return undefined;
    const known = isCommit(revision)
      ? revision
      : await readFile(this.#path(name, 'refs', revision), 'utf8').catch(() => '');
    return isCommit(known.trim()) ? this.snapshotAt(name, known.trim()) : undefined;
  }

  /** The files of a commit; undefined when the cache has none of them. */
  async snapshotAt(name: string, commit: string): Promise<Snapshot | undefined> {
    if (this.#folder === undefined) return undefined;
    const folder = this.#path(name, 'snapshots', commit);
    const names = await readdir(folder).catch(() => undefined);
    return names === undefined ? undefined : { commit, folder, lacks: await lacking(folder) };
  }

  #path(name: string, ...rest: readonly string[]): string {
    return join(this.#folder ?? '', `models--${name.replace('/', '--')}`, ...rest);
  }
}
