/**
 * A model as a local folder: an existing one, or one from the Hugging Face hub, downloaded once into a cache by commit.
 *
 * Cache: `<cache>/<org>--<name>/<commit>/` with the files. `complete.json` in it lists the verified files and is
 * written last. `<cache>/<org>--<name>/refs/<revision>` stores the commit that a branch last pointed to, for when the
 * hub is unreachable. A complete commit needs no network. A commit that the Python client has fetched is used where it
 * lies.
 */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError, RetryableError } from '../core/errors.ts';
import { HubClient, type HubModel } from './hub/client.ts';
import { type DownloadOptions, download, fetchedBytes, isWhole } from './hub/download.ts';
import { type HubFile, chooseFiles } from './hub/files.ts';
import { withLock } from './hub/lock.ts';
import { readReference } from './hub/reference.ts';
import type { HubSettings } from './hub/settings.ts';
import { SharedCache, type Snapshot } from './hub/shared-cache.ts';

export { hubSettings } from './hub/settings.ts';
export type { HubSettings } from './hub/settings.ts';

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
  const shared = new SharedCache(options.sharedCache);
  const client = new HubClient(options);
  const found =
    options.offline === true ? await offlineCopy(model, home, shared) : await copyOf(client, model, home, shared);
  const hub = { name: model.name, revision: model.revision, commit: found.commit };
  if (found.folder !== undefined) return { folder: found.folder, hub };
  const folder = join(home, found.commit);
  await mkdir(folder, { recursive: true });
  let missingBytes = 0;
  await withLock(join(home, `${found.commit}.lock`), async () => {
    if (await isComplete(folder)) return;
    missingBytes = await fetchFiles(client, { name: model.name, revision: found.commit }, folder, options);
  });
  return { folder, hub, ...(missingBytes > 0 && { missingBytes }) };
}

/** A commit, and the folder that has all of it; absent: it must be fetched. */
interface Copy {
  readonly commit: string;
  readonly folder?: string;
}

/**
 * A branch is resolved by the hub, or by the caches when the hub gives no answer. A commit that is there needs no hub.
 */
async function copyOf(client: HubClient, model: HubModel, home: string, shared: SharedCache): Promise<Copy> {
  const known = isCommit(model.revision) ? await copyAt(model.name, model.revision, home, shared) : undefined;
  if (known?.folder !== undefined) return known;
  try {
    const commit = await client.commitOf(model);
    if (!/^[\da-f]{6,64}$/.test(commit))
      throw new InvalidInputError(`${model.name}: the hub names ${JSON.stringify(commit)} as commit`);
    await mkdir(join(home, 'refs'), { recursive: true });
    await writeFile(refOf(home, model), commit);
    return copyAt(model.name, commit, home, shared);
  } catch (error) {
    const last = await lastCopy(model, home, shared, error instanceof RetryableError);
    if (last?.folder !== undefined) return last;
    throw error;
  }
}

/** Throws InvalidInputError that says what to type on a machine with a network. */
async function offlineCopy(model: HubModel, home: string, shared: SharedCache): Promise<Copy> {
  const last = await lastCopy(model, home, shared, true);
  if (last?.folder !== undefined) return last;
  const { name, revision } = model;
  const snapshot = await shared.snapshotOf(model);
  const why =
    snapshot === undefined
      ? 'no cache of this machine has it'
      : `${snapshot.folder} lacks ${snapshot.lacks.join(', ')}`;
  throw new InvalidInputError(
    `${name} at ${revision} cannot be fetched, because HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set: ${why}`,
    {
      hint: `where there is a network: HF_HUB_OFFLINE=0 hf download ${name}${revision === 'main' ? '' : ` --revision ${revision}`}`,
    },
  );
}

/** What the caches know of the revision. `own`: petrel's own cache may answer too. */
async function lastCopy(model: HubModel, home: string, shared: SharedCache, own: boolean): Promise<Copy | undefined> {
  const last = isCommit(model.revision)
    ? model.revision
    : (await readFile(refOf(home, model), 'utf8').catch(() => '')).trim();
  if (own && /^[\da-f]{6,64}$/.test(last) && (await isComplete(join(home, last))))
    return { commit: last, folder: join(home, last) };
  return usable(await shared.snapshotOf(model));
}

async function copyAt(name: string, commit: string, home: string, shared: SharedCache): Promise<Copy> {
  const folder = join(home, commit);
  if (await isComplete(folder)) return { commit, folder };
  return usable(await shared.snapshotAt(name, commit)) ?? { commit };
}

const usable = (snapshot: Snapshot | undefined): Copy | undefined =>
  snapshot !== undefined && snapshot.lacks.length === 0
    ? { commit: snapshot.commit, folder: snapshot.folder }
    : undefined;

const isCommit = (revision: string): boolean => /^[\da-f]{40}$/.test(revision);

const refOf = (home: string, { revision }: HubModel): string => join(home, 'refs', encodeURIComponent(revision));

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
