/**
 * The files of a model or dataset in the store. A user's folder may have a name of the same form, so a folder is
 * petrel's only if its files hash to the digest in its name.
 */
import { isDamage } from '../../core/records/damage.ts';
import type { Store } from '../../core/ports/store.ts';
import { datasetFiles } from '../inputs/datasets.ts';
import { modelManifestName, readModelManifest } from '../inputs/model-facts.ts';

/**
 * Names of the files that petrel wrote into `models/<digest>/` or `datasets/<digest>/`; undefined when it is not
 * petrel's.
 */
export async function filesOfInput(store: Store, folder: string): Promise<readonly string[] | undefined> {
  const [kind, digest = ''] = folder.split('/');
  if (kind !== 'models') return datasetFiles(store, digest);
  try {
    return [...(await readModelManifest(store, digest)).map(({ name }) => name), modelManifestName];
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}
