/** A model folder as a fact of the store: the files that matter, under the digest of their digests. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TerminalError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { digestOf } from './digest.ts';

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
  for (const { path, name, bytes } of files) {
    const key = keys.model(digest, name);
    if ((await store.head(key)) !== bytes) await store.put(key, createReadStream(path, { highWaterMark: 4 << 20 }));
  }
  await store.put(keys.model(digest, manifestName), new TextEncoder().encode(JSON.stringify({ format: 1, files: facts })));
  return digest;
}

/** A local folder with the model's files: the store's own when it is a folder, a copy under `cache` otherwise. */
export async function modelFolder(store: Store, digest: Digest, cache: string): Promise<string> {
  const manifest = await store.get(keys.model(digest, manifestName));
  if (manifest === undefined) throw new TerminalError('MissingModel', `models/${digest}: not in the store ${store.url}`);
  const own = store.localPath(keys.model(digest, manifestName));
  if (own !== undefined) return dirname(own);
  const files = (JSON.parse(new TextDecoder().decode(manifest)) as { files: FileFact[] }).files;
  const folder = join(cache, 'models', digest);
  await mkdir(folder, { recursive: true });
  for (const file of files) await copyDown(store, digest, file, folder);
  return folder;
}

async function copyDown(store: Store, digest: Digest, file: FileFact, folder: string): Promise<void> {
  const path = join(folder, file.name);
  if ((await stat(path).catch(() => undefined))?.size === file.bytes) return;
  const stream = await store.stream(keys.model(digest, file.name));
  if (stream === undefined) throw new TerminalError('MissingModel', `models/${digest}/${file.name}: not in the store`);
  const partial = `${path}.${process.pid}.partial`;
  await pipeline(Readable.from(stream), createWriteStream(partial));
  await rename(partial, path);
}

async function fileDigest(path: string): Promise<Digest> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 4 << 20 })) hash.update(chunk as Uint8Array);
  return hash.digest('hex');
}
