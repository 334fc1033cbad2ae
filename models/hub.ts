/**
 * A model as a local folder: an existing one, or one from the Hugging Face hub, downloaded once into a cache by commit.
 *
 * Cache: `<cache>/<org>--<name>/<commit>/` with the files. `complete.json` in it lists the verified files and is
 * written last. `<cache>/<org>--<name>/refs/<revision>` stores the commit that a branch last pointed to, for when the
 * hub is unreachable. A complete commit needs no network.
 */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError, RetryableError } from '../core/errors.ts';
import { HubClient, type HubModel, type HubSettings } from './hub/client.ts';
import { type DownloadOptions, download, fetchedBytes, isWhole } from './hub/download.ts';
import { type HubFile, chooseFiles } from './hub/files.ts';
import { withLock } from './hub/lock.ts';
import { readReference } from './hub/reference.ts';

export { hubSettings } from './hub/client.ts';
export type { HubSettings } from './hub/client.ts';

export interface FetchProgress {
  readonly file: string;
  readonly bytes: number;
  readonly totalBytes: number;
}

export interface ModelOptions extends HubSettings {
  /** `PETREL_HOME/hub`. */
  readonly cache: string;
  /** Revision to use when the reference contains none. Default: main. */
  readonly revision?: string;
  readonly onProgress?: (progress: FetchProgress) => void;
  /** Called before a download with the number of bytes. Throws when the disk has too little space. */
  readonly checkRoom?: (bytes: number) => Promise<void>;
  readonly download?: Pick<DownloadOptions, 'attempts' | 'retryMs'>;
  /** Downloads the files that describe the model, without its weights. */
  readonly withoutWeights?: boolean;
}

export interface LocalModel {
  readonly folder: string;
  /** Origin on the hub; absent for a folder of the user. */
  readonly hub?: { readonly name: string; readonly revision: string; readonly commit: string };
  /** Bytes of weights that are not downloaded yet; absent when all are. */
  readonly missingBytes?: number;
}

/**
 * `reference`: a folder, `org/name` or `org/name@revision`. Throws InvalidInputError, or RetryableError without
 * network.
 */
export async function localModel(reference: string, options: ModelOptions): Promise<LocalModel> {
  const found = await readReference(reference, options.revision);
  if (found.type === 'hub') return fetchModel(found, options);
  const isModel = await stat(join(found.folder, 'config.json')).then(
    () => true,
    () => false,
  );
  if (!isModel) {
    throw new InvalidInputError(`${found.folder}: there is no config.json: not a Hugging Face model folder`, {
      where: found.folder,
      hint: 'model.path is a folder with config.json, safetensors and tokenizer.json, or a name on the hub (org/name).',
    });
  }
  return { folder: found.folder };
}

async function fetchModel(model: HubModel, options: ModelOptions): Promise<LocalModel> {
  const home = join(options.cache, model.name.replace('/', '--'));
  const client = new HubClient(options);
  const commit = await resolveCommit(client, model, home);
  const folder = join(home, commit);
  const hub = { name: model.name, revision: model.revision, commit };
  if (await isComplete(folder)) return { folder, hub };
  await mkdir(folder, { recursive: true });
  let missingBytes = 0;
  await withLock(join(home, `${commit}.lock`), async () => {
    if (await isComplete(folder)) return;
    missingBytes = await fetchFiles(client, { name: model.name, revision: commit }, folder, options);
  });
  return { folder, hub, ...(missingBytes > 0 && { missingBytes }) };
}

/** A full commit is used as it is. A branch is resolved by the hub, or by the cache when the hub is unreachable. */
async function resolveCommit(client: HubClient, model: HubModel, home: string): Promise<string> {
  if (/^[\da-f]{40}$/.test(model.revision) && (await isComplete(join(home, model.revision)))) return model.revision;
  const ref = join(home, 'refs', encodeURIComponent(model.revision));
  try {
    const commit = await client.commitOf(model);
    if (!/^[\da-f]{6,64}$/.test(commit))
      throw new InvalidInputError(`${model.name}: the hub names ${JSON.stringify(commit)} as commit`);
    await mkdir(join(home, 'refs'), { recursive: true });
    await writeFile(ref, commit);
    return commit;
  } catch (error) {
    if (!(error instanceof RetryableError)) throw error;
    const last = (await readFile(ref, 'utf8').catch(() => '')).trim();
    if (/^[\da-f]{6,64}$/.test(last) && (await isComplete(join(home, last)))) return last;
    throw error;
  }
}

/** Returns the bytes of weights that were not downloaded. */
async function fetchFiles(client: HubClient, model: HubModel, folder: string, options: ModelOptions): Promise<number> {
  const files = chooseFiles(await client.files(model), model.name);
  const totalBytes = files.reduce((sum, file) => sum + file.size, 0);
  await options.checkRoom?.(await bytesToCome(files, folder));
  let bytes = 0;
  const left = options.withoutWeights === true ? files.filter(isWeights) : [];
  for (const file of files.filter((one) => !left.includes(one))) {
    const target = join(folder, file.path);
    const onBytes = (count: number): void =>
      options.onProgress?.({ file: file.path, bytes: (bytes += count), totalBytes });
    if (await isWhole(target, file)) onBytes(file.size);
    else await download(client, model, file, target, { ...options.download, onBytes });
  }
  if (left.length > 0) return left.reduce((sum, { size }) => sum + size, 0);
  const listed = files.map(({ path, size, digest }: HubFile) => ({
    path,
    size,
    ...(digest && { [digest.type]: digest.hex }),
  }));
  await writeFile(join(folder, 'complete.json'), `${JSON.stringify({ ...model, files: listed }, null, 2)}\n`);
  return 0;
}

const isWeights = ({ path }: HubFile): boolean => path.endsWith('.safetensors');

/** Minus the bytes of an earlier attempt. */
async function bytesToCome(files: readonly HubFile[], folder: string): Promise<number> {
  const missing = files.map(async ({ path, size }) => Math.max(0, size - (await fetchedBytes(join(folder, path)))));
  return (await Promise.all(missing)).reduce((sum, size) => sum + size, 0);
}

async function isComplete(folder: string): Promise<boolean> {
  return stat(join(folder, 'complete.json')).then(
    () => true,
    () => false,
  );
}
