/**
 * Models in the cache of Hugging Face's Python client: `models--<org>--<name>/refs/<revision>` holds a commit,
 * `snapshots/<commit>/` the files, as links to `blobs/`. They are used where they lie; nothing is written there.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { HubModel } from './client.ts';

const commitShape = /^[\da-f]{40}$/;
const index = 'model.safetensors.index.json';

/** A commit of a model in the cache. */
export interface Snapshot {
  readonly commit: string;
  readonly folder: string;
  /** What the model needs and the folder does not have; empty: the snapshot can be used. */
  readonly lacks: readonly string[];
}

export class SharedCache {
  readonly #folder: string | undefined;

  /** undefined: there is no such cache. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** The commit that the branch, tag or commit had when the model was last fetched; undefined when it never was. */
  async snapshotOf({ name, revision }: HubModel): Promise<Snapshot | undefined> {
    if (this.#folder === undefined) return undefined;
    const known = commitShape.test(revision)
      ? revision
      : await readFile(this.#path(name, 'refs', revision), 'utf8').catch(() => '');
    return commitShape.test(known.trim()) ? this.snapshotAt(name, known.trim()) : undefined;
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

/** config, tokenizer and all weights. A link whose file was cleaned away counts as lacking. */
async function lacking(folder: string): Promise<readonly string[]> {
  const has = async (name: string) =>
    stat(join(folder, name)).then(
      (entry) => entry.isFile(),
      () => false,
    );
  const needed = ['config.json', 'tokenizer.json', ...(await weightsOf(folder, has))];
  const found = await Promise.all(needed.map(has));
  return needed.filter((_, i) => found[i] !== true);
}

async function weightsOf(folder: string, has: (name: string) => Promise<boolean>): Promise<readonly string[]> {
  if (!(await has(index)) || (await has('model.safetensors'))) return ['model.safetensors'];
  try {
    const { weight_map: files } = JSON.parse(await readFile(join(folder, index), 'utf8')) as {
      readonly weight_map: Record<string, string>;
    };
    return [...new Set(Object.values(files))];
  } catch {
    return [index];
  }
}
