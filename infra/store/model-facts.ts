/** A model folder as a fact of the store: the files that matter, under the digest of their digests. */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { checked, digestOf } from './digest.ts';

const manifestName = 'manifest.json';

interface FileFact {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: Digest;
}

/** Everything a model folder may hold that training or export reads. */
const wanted = /^(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template)\.json$|\.safetensors(\.index\.json)?$|^merges\.txt$|^vocab\.txt$|\.jinja$|^tokenizer\.model$/;

/** What belongs to the model even when the tokenizer comes from elsewhere. */
const modelOnly = /^(config|generation_config)\.json$|\.safetensors/;

/**
 * Stores the model once; the same content gives the same digest wherever it lay. Tokenizer files come from
 * `tokenizerFolder`, usually the same one.
 */
export async function storeModelFolder(store: Store, folder: string, tokenizerFolder = folder): Promise<Digest> {
  const paths = [
    ...(await readdir(folder)).filter((name) => modelOnly.test(name)).map((name) => join(folder, name)),
    ...(await readdir(tokenizerFolder)).filter((name) => !modelOnly.test(name)).map((name) => join(tokenizerFolder, name)),
  ].filter((path) => wanted.test(basename(path)));
  const files: (FileFact & { readonly path: string })[] = [];
  for (const path of paths.sort((a, b) => (basename(a) < basename(b) ? -1 : 1))) {
    files.push({ path, name: basename(path), bytes: (await stat(path)).size, sha256: await fileDigest(path) });
  }
  const facts: FileFact[] = files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 }));
  const digest = digestOf({ format: 1, files: facts });
  for (const { path, name, bytes, sha256 } of files) {
    const key = keys.model(digest, name);
    if ((await store.head(key)) !== bytes) await store.put(key, checked(createReadStream(path, { highWaterMark: 4 << 20 }), sha256, () => changed(path)));
  }
  await store.put(keys.model(digest, manifestName), new TextEncoder().encode(JSON.stringify({ format: 1, files: facts })));
  return digest;
}

/** Folders that were made ready by this process, by store, model and cache. */
const ready = new Map<string, Promise<string>>();

/**
 * A local folder with the model's files: the store's own when it is a folder, a copy under `cache` otherwise, each file
 * compared with its digest before it gets its name. Throws TerminalError `MissingModel` or `DamagedModel`.
 */
export function modelFolder(store: Store, digest: Digest, cache: string): Promise<string> {
  const id = `${store.place} ${digest} ${cache}`;
  let folder = ready.get(id);
  if (folder === undefined) {
    folder = makeReady(store, digest, cache);
    folder.catch(() => ready.delete(id));
    if (store.localPath(manifestName) === undefined) ready.set(id, folder);
  }
  return folder;
}

async function makeReady(store: Store, digest: Digest, cache: string): Promise<string> {
  const key = keys.model(digest, manifestName);
  const manifest = await store.get(key);
  if (manifest === undefined) throw new TerminalError('MissingModel', `models/${digest}: not in the store ${store.url}`);
  const own = store.localPath(key);
  if (own !== undefined) return dirname(own);
  const { files } = JSON.parse(new TextDecoder().decode(manifest)) as { readonly files: readonly FileFact[] };
  if (digestOf({ format: 1, files }) !== digest) throw damaged(key);
  const folder = join(cache, 'models', digest);
  await mkdir(folder, { recursive: true });
  for (const file of files) await copyDown(store, digest, file, folder);
  return folder;
}

/** A file that has its name was whole when it got it. Several processes may do this at once: each writes its own copy. */
async function copyDown(store: Store, digest: Digest, file: FileFact, folder: string): Promise<void> {
  const path = join(folder, file.name);
  if ((await stat(path).catch(() => undefined))?.size === file.bytes) return;
  const key = keys.model(digest, file.name);
  const stream = await store.stream(key);
  if (stream === undefined) throw new TerminalError('MissingModel', `${key}: not in the store ${store.url}`);
  const partial = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.partial`;
  try {
    await pipeline(checked(stream, file.sha256, () => damaged(key)), createWriteStream(partial, { flush: true }));
    await rename(partial, path);
  } finally {
    await rm(partial, { force: true });
  }
}

function damaged(key: string): TerminalError {
  return new TerminalError('DamagedModel', `${key}: its bytes do not match its digest`, {
    where: key,
    hint: 'Restore the object from a copy of the store, or remove it and start a run with the same model, which writes it anew',
  });
}

function changed(path: string): InvalidInputError {
  return new InvalidInputError(`${path}: it changed while it was stored`, { where: path, hint: 'Start the run again when nothing writes to the model folder' });
}

async function fileDigest(path: string): Promise<Digest> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 4 << 20 })) hash.update(chunk as Uint8Array);
  return hash.digest('hex');
}
