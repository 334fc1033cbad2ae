/**
 * A model as a local folder: an existing one, or one from the Hugging Face hub or ModelScope, downloaded once into a
 * cache by commit.
 *
 * Cache: `<cache>/<org>--<name>/<commit>/` with the files, below `<cache>/modelscope/` those of ModelScope.
 * `complete.json` in it lists the verified files and is written last. `<cache>/<org>--<name>/refs/<revision>` stores
 * the commit that a branch last pointed to, for when the hub is unreachable. A complete commit needs no network. A
 * commit that the hub's Python client has fetched is used where it lies.
 */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError, RetryableError } from '../core/errors.ts';
import { type DownloadOptions, download, fetchedBytes, isWhole } from './hub/download.ts';
import type { HubFile } from './hub/files.ts';
import { type Hub, type HubCommit, type HubModel, isCommit } from './hub/hub.ts';
import { HuggingFace } from './hub/hugging-face.ts';
import { withLock } from './hub/lock.ts';
import { ModelScope } from './hub/modelscope.ts';
import { readReference } from './hub/reference.ts';
import type { HubSettings } from './hub/settings.ts';
import type { Snapshot } from './hub/snapshot.ts';

export { hubSettings, modelScopeSettings } from './hub/settings.ts';
export type { HubSettings } from './hub/settings.ts';

export interface FetchProgress {
  readonly file: string;
  readonly bytes: number;
  readonly totalBytes: number;
}

/** The settings are those of Hugging Face; `fetch` and `offline` hold for ModelScope too. */
export interface ModelOptions extends HubSettings {
  readonly modelScope: Pick<HubSettings, 'hubUrl' | 'token' | 'sharedCache'>;
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
  /** Origin on a hub; absent for a folder of the user. */
  readonly hub?: { readonly name: string; readonly revision: string; readonly commit: string };
  /** Bytes of weights that are not downloaded yet; absent when all are. */
  readonly missingBytes?: number;
}

/**
 * `reference`: a folder, or `org/name` or `org/name@revision`, after `modelscope:` for ModelScope. Throws
 * InvalidInputError, or RetryableError without network.
 */
export async function localModel(reference: string, options: ModelOptions): Promise<LocalModel> {
  const found = await readReference(reference, options.revision);
  if (found.type !== 'folder') return fetchModel(hubOf(found.type, options), found, options);
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

function hubOf(type: 'hub' | 'modelscope', options: ModelOptions): Hub {
  if (type === 'hub') return new HuggingFace(options);
  const { fetch, modelScope } = options;
  return new ModelScope({ ...modelScope, ...(fetch && { fetch }) });
}

async function fetchModel(hub: Hub, { name, revision }: HubModel, options: ModelOptions): Promise<LocalModel> {
  const model = { name, revision };
  const home = join(options.cache, hub.folder, name.replace('/', '--'));
  const found = options.offline === true ? await offlineCopy(hub, model, home) : await copyOf(hub, model, home);
  const origin = { name: `${hub.prefix}${name}`, revision, commit: found.commit };
  if ('folder' in found) return { folder: found.folder, hub: origin };
  const folder = join(home, found.commit);
  await mkdir(folder, { recursive: true });
  let missingBytes = 0;
  await withLock(join(home, `${found.commit}.lock`), async () => {
    if (await isComplete(folder)) return;
    missingBytes = await fetchFiles(found, folder, options);
  });
  return { folder, hub: origin, ...(missingBytes > 0 && { missingBytes }) };
}

/** A folder that has all of a commit. */
interface Copy {
  readonly commit: string;
  readonly folder: string;
}

/**
 * A branch is resolved by the hub, or by the caches when the hub gives no answer. A commit that is there needs no hub,
 * and one that is nowhere must be fetched.
 */
async function copyOf(hub: Hub, model: HubModel, home: string): Promise<Copy | HubCommit> {
  const known = isCommit(model.revision) ? await copyAt(hub, model.name, model.revision, home) : undefined;
  if (known !== undefined) return known;
  try {
    const found = await hub.commitOf(model);
    if (!/^[\da-f]{6,64}$/.test(found.commit))
      throw new InvalidInputError(`${model.name}: the hub names ${JSON.stringify(found.commit)} as commit`);
    await mkdir(join(home, 'refs'), { recursive: true });
    await writeFile(refOf(home, model), found.commit);
    return (await copyAt(hub, model.name, found.commit, home)) ?? found;
  } catch (error) {
    const last = await lastCopy(hub, model, home, error instanceof RetryableError);
    if (last !== undefined) return last;
    throw error;
  }
}

/** Throws InvalidInputError that says what to type on a machine with a network. */
async function offlineCopy(hub: Hub, model: HubModel, home: string): Promise<Copy> {
  const last = await lastCopy(hub, model, home, true);
  if (last !== undefined) return last;
  const snapshot = await hub.shared.snapshotOf(model);
  const why =
    snapshot === undefined
      ? 'no cache of this machine has it'
      : `${snapshot.folder} lacks ${snapshot.lacks.join(', ')}`;
  throw new InvalidInputError(
    `${hub.prefix}${model.name} at ${model.revision} cannot be fetched, because HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set: ${why}`,
    { hint: `where there is a network: ${hub.fetchCommand(model)}` },
  );
}

/** What the caches know of the revision. `own`: petrel's own cache may answer too. */
async function lastCopy(hub: Hub, model: HubModel, home: string, own: boolean): Promise<Copy | undefined> {
  const last = isCommit(model.revision)
    ? model.revision
    : (await readFile(refOf(home, model), 'utf8').catch(() => '')).trim();
  if (own && /^[\da-f]{6,64}$/.test(last) && (await isComplete(join(home, last))))
    return { commit: last, folder: join(home, last) };
  return usable(await hub.shared.snapshotOf(model));
}

async function copyAt(hub: Hub, name: string, commit: string, home: string): Promise<Copy | undefined> {
  const folder = join(home, commit);
  if (await isComplete(folder)) return { commit, folder };
  return usable(await hub.shared.snapshotAt(name, commit));
}

const usable = (snapshot: Snapshot | undefined): Copy | undefined =>
  snapshot !== undefined && snapshot.lacks.length === 0
    ? { commit: snapshot.commit, folder: snapshot.folder }
    : undefined;

const refOf = (home: string, { revision }: HubModel): string => join(home, 'refs', encodeURIComponent(revision));

/** Returns the bytes of weights that were not downloaded. */
async function fetchFiles(model: HubCommit, folder: string, options: ModelOptions): Promise<number> {
  const files = await model.files();
  const totalBytes = files.reduce((sum, file) => sum + file.size, 0);
  await options.checkRoom?.(await bytesToCome(files, folder));
  let bytes = 0;
  const left = options.withoutWeights === true ? files.filter(isWeights) : [];
  for (const file of files.filter((one) => !left.includes(one))) {
    const target = join(folder, file.path);
    const onBytes = (count: number): void =>
      options.onProgress?.({ file: file.path, bytes: (bytes += count), totalBytes });
    if (await isWhole(target, file)) onBytes(file.size);
    else await download(model, file, target, { ...options.download, onBytes });
  }
  if (left.length > 0) return left.reduce((sum, { size }) => sum + size, 0);
  const listed = files.map(({ path, size, digest }: HubFile) => ({
    path,
    size,
    ...(digest && { [digest.type]: digest.hex }),
  }));
  const complete = { name: model.name, revision: model.commit, files: listed };
  await writeFile(join(folder, 'complete.json'), `${JSON.stringify(complete, null, 2)}\n`);
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
