/** A model's folder in the cache of a hub's own Python client, and what it lacks. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

const index = 'model.safetensors.index.json';

/** A model in a cache. */
export interface Snapshot {
  /** Its commit, or the revision where the cache knows no commits. */
  readonly commit: string;
  readonly folder: string;
  /** What the model needs and the folder does not have; empty: the snapshot can be used. */
  readonly lacks: readonly string[];
}

/** The names of config, tokenizer and weights that are not there. A link whose file was cleaned away is not. */
export async function lacking(folder: string): Promise<readonly string[]> {
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
