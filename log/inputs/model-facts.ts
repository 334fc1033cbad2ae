/** Models in the store: the files that matter, under the digest of their digests. */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { damage } from '../../core/records/damage.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { PauseError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { checked, digestOf } from '../objects/digest.ts';
import { whileRoomHere } from '../objects/free-space.ts';

export const modelManifestName = 'manifest.json';

export interface FileFact {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: Digest;
}

/** Files of a model folder that training or export reads. */
const wanted =
  /^(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template)\.json$|\.safetensors(\.index\.json)?$|^merges\.txt$|^vocab\.txt$|\.jinja$|^tokenizer\.model$/;

/** A graph in place of safetensors, and its weights where they do not fit into it. */
const graph = /^model\.onnx([._]data)?$/;

/** A whole model may have the config of an adapter beside it. It is none. */
const isOfAdapter = (name: string, base: Digest | undefined): boolean =>
  base !== undefined && name === 'adapter_config.json';

/** Weights are read only where they are used. */
const isWeights = (name: string): boolean => name.endsWith('.safetensors') || graph.test(name);

/** Files that belong to the model even when the tokenizer comes from another folder. */
const modelOnly = /^(config|generation_config)\.json$|\.safetensors/;

/** A model in the store. */
export interface StoredModel {
  readonly files: readonly FileFact[];
  /** The model whose weights an adapter adds to. Its folder lies beside the adapter's. */
  readonly base?: Digest | undefined;
}

/**
 * Stores the model once; the same content gives the same digest, whatever its folder. Tokenizer files come from
 * `tokenizerFolder`, usually the same folder. `base`: the folder is an adapter's, of this stored model.
 */
export async function storeModelFolder(
  store: Store,
  folder: string,
  tokenizerFolder = folder,
  base?: Digest,
): Promise<Digest> {
  const own = (await readdir(folder)).filter(
    (name) => wanted.test(name) || graph.test(name) || isOfAdapter(name, base),
  );
  const hasTensors = own.some((name) => name.endsWith('.safetensors'));
  const paths = [
    ...own.filter((name) => modelOnly.test(name) || isOfAdapter(name, base)).map((name) => join(folder, name)),
    ...own.filter((name) => graph.test(name) && !hasTensors).map((name) => join(folder, name)),
    ...(await readdir(tokenizerFolder))
      .filter((name) => !modelOnly.test(name) && wanted.test(name))
      .map((name) => join(tokenizerFolder, name)),
  ];
  const files: (FileFact & { readonly path: string })[] = [];
  for (const path of paths.sort((a, b) => (basename(a) < basename(b) ? -1 : 1))) {
    files.push({ path, name: basename(path), bytes: (await stat(path)).size, sha256: await fileDigest(path) });
  }
  const facts: FileFact[] = files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 }));
  const named = { format: 1, files: facts, ...(base !== undefined && { base }) };
  const digest = digestOf(named);
  // Written first: the manifest tells the janitor that the folder is petrel's, also when this process dies halfway.
  await store.put(keys.model(digest, modelManifestName), new TextEncoder().encode(JSON.stringify(named)));
  for (const { path, name, bytes, sha256 } of files) {
    const key = keys.model(digest, name);
    if (!(await isThere(store, key, bytes, sha256)))
      await store.put(
        key,
        checked(createReadStream(path, { highWaterMark: 4 << 20 }), sha256, () => changed(path)),
      );
  }
  return digest;
}

/**
 * True when the object exists; in a folder store it is read, and made durable if its bytes are right. An object store
 * has checksums of its own.
 */
async function isThere(store: Store, key: string, bytes: number, sha256: Digest): Promise<boolean> {
  if ((await store.head(key)) !== bytes) return false;
  const path = store.localPath(key);
  if (path !== undefined && (await fileDigest(path)) !== sha256) return false;
  await store.settle();
  return true;
}

/**
 * Which files the caller will read: `text` leaves out the weights, because hashing them is slow. `opening`: what an
 * engine reads before the weights of a state come: of an adapter, that is all of its base.
 */
export type ModelPart = 'all' | 'text' | 'opening';

/**
 * A local folder with the model's files: the store's own folder, or a copy under `cache` for a bucket. This process
 * hashes every file of `part` once; `onBytes` is called while a copy is hashed. Throws PauseError `MissingModel` or
 * `DamagedModel`, RetryableError `StoreGone`, UnfitError `DiskFull` when the copy does not fit.
 */
export async function modelFolder(
  store: Store,
  digest: Digest,
  cache: string,
  part: ModelPart = 'all',
  onBytes: () => void = () => {},
): Promise<string> {
  const model = await once(`${store.place} ${digest}`, () => readModel(store, digest));
  const files = model.files.filter(({ name }) => part === 'all' || !isWeights(name));
  const key = keys.model(digest, modelManifestName);
  const own = store.localPath(key);
  const folder = own === undefined ? join(cache, 'models', digest) : dirname(own);
  if (own === undefined) await mkdir(folder, { recursive: true });
  else if ((await store.head(key)) === undefined) throw missing(store, key); // it existed when it was hashed
  for (const file of files)
    await once(`${store.place} ${folder} ${file.name}`, () =>
      makeSure(store, digest, file, folder, own !== undefined, onBytes),
    );
  if (model.base !== undefined && part !== 'text') await modelFolder(store, model.base, cache, 'all', onBytes);
  return folder;
}

/** Names, sizes and digests of a model's files. The list itself is checked against the model's name. */
export async function readModelManifest(store: Store, digest: Digest): Promise<readonly FileFact[]> {
  return (await readModel(store, digest)).files;
}

async function readModel(store: Store, digest: Digest): Promise<StoredModel> {
  const key = keys.model(digest, modelManifestName);
  const bytes = await store.get(key);
  if (bytes === undefined) throw missing(store, key);
  const model = parseManifest(bytes);
  if (model === undefined || digestOf({ format: 1, ...model }) !== digest)
    throw damage('DamagedModel', key, 'it does not match its name', howToRestore);
  return model;
}

/** Throws PauseError `DamagedModel` or `MissingModel` unless the file in the store matches the manifest. */
export async function checkModelFile(store: Store, digest: Digest, { name, bytes, sha256 }: FileFact): Promise<void> {
  const key = keys.model(digest, name);
  const stream = await store.stream(key);
  if (stream === undefined) throw missing(store, key);
  const hash = createHash('sha256');
  let read = 0;
  for await (const chunk of stream) {
    hash.update(chunk);
    read += chunk.byteLength;
  }
  if (read !== bytes) throw damage('DamagedModel', key, `${bytes} bytes expected, ${read} found`, howToRestore);
  if (hash.digest('hex') !== sha256)
    throw damage('DamagedModel', key, 'its bytes do not match its digest', howToRestore);
}

const howToRestore =
  'Restore the folder from a copy of the store, or start any run with the same model, which writes the model again; then petrel resume';

const missing = ({ url }: Store, key: string): PauseError =>
  damage('MissingModel', key, `not in the store ${url}`, howToRestore);

const manifestSchema = z.object({
  files: z.array(
    z.object({ name: z.string().regex(/^(?!\.\.?$)[^/]+$/), bytes: z.int().nonnegative(), sha256: z.string() }),
  ),
  base: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});

function parseManifest(bytes: Uint8Array): StoredModel | undefined {
  try {
    return manifestSchema.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
  } catch {
    return undefined; // not JSON, so it cannot match its name
  }
}

/** Checks that this process has done or is doing, by name. */
const known = new Map<string, Promise<unknown>>();

function once<T>(name: string, check: () => Promise<T>): Promise<T> {
  const checking = (known.get(name) as Promise<T> | undefined) ?? check();
  known.set(name, checking);
  checking.catch(() => known.delete(name));
  return checking;
}

/** The store's own file is hashed where it is; a copy is hashed while it is downloaded. */
async function makeSure(
  store: Store,
  digest: Digest,
  file: FileFact,
  folder: string,
  own: boolean,
  onBytes: () => void,
): Promise<void> {
  if (own) return checkModelFile(store, digest, file);
  const path = join(folder, file.name);
  if (
    (await stat(path).catch(() => undefined))?.size === file.bytes &&
    (await fileDigest(path, onBytes)) === file.sha256
  )
    return;
  const key = keys.model(digest, file.name);
  const stream = await store.stream(key);
  if (stream === undefined) throw missing(store, key);
  // Several processes may do this at once, so each writes its own temporary copy.
  const partial = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.partial`;
  try {
    const right = checked(stream, file.sha256, () =>
      damage('DamagedModel', key, 'its bytes do not match its digest', howToRestore),
    );
    await whileRoomHere("petrel's cache", folder, () => pipeline(right, createWriteStream(partial, { flush: true })));
    await rename(partial, path);
  } finally {
    await rm(partial, { force: true });
  }
}

function changed(path: string): InvalidInputError {
  return new InvalidInputError(`${path}: the file changed while petrel copied it`, {
    where: path,
    hint: 'start the run again when no program writes to the model folder',
  });
}

async function fileDigest(path: string, onBytes: () => void = () => {}): Promise<Digest> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 4 << 20 })) {
    hash.update(chunk as Uint8Array);
    onBytes();
  }
  return hash.digest('hex');
}
