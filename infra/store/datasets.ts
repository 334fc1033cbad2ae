/** Datasets in the store: reads and writes their files. models/dataset-fact.ts defines the contents. */
import { createHash } from 'node:crypto';
import { damage } from '../../core/damage.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { isIntact } from './blobs.ts';
import { digestOf, sha256 } from './digest.ts';

/** File names with their bytes; the digest covers all of them. */
export async function storeDataset(store: Store, files: Readonly<Record<string, Uint8Array>>): Promise<Digest> {
  const digest = digestOf({
    format: 1,
    files: Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, sha256(bytes)])),
  });
  for (const [name, bytes] of Object.entries(files)) {
    const key = keys.dataset(digest, name);
    if (!(await isIntact(store, key, bytes.byteLength, sha256(bytes)))) await store.put(key, bytes);
  }
  return digest;
}

/** Reads the files back and checks them against the digest. Throws PauseError `DamagedDataset`. */
export async function readDatasetFiles(store: Store, digest: Digest, names: readonly string[]): Promise<Uint8Array[]> {
  const found = await Promise.all(names.map((name) => store.get(keys.dataset(digest, name))));
  const files = Object.fromEntries(names.map((name, i) => [name, sha256(found[i] ?? new Uint8Array())]));
  if (digestOf({ format: 1, files }) !== digest) {
    throw damage('DamagedDataset', `datasets/${digest}`, 'absent, or its bytes do not match its name', howToRestore);
  }
  return found.map((bytes) => bytes ?? new Uint8Array());
}

/** Names of all files of a dataset; undefined when the files do not hash to this digest. */
export async function datasetFiles(store: Store, digest: Digest): Promise<readonly string[] | undefined> {
  const names = (await store.children(keys.dataset(digest, ''))).filter((name) => !name.endsWith('/'));
  const hashes = await Promise.all(names.map((name) => digestOfStream(store, keys.dataset(digest, name))));
  const files = Object.fromEntries(names.map((name, i) => [name, hashes[i]]));
  return digestOf({ format: 1, files }) === digest ? names : undefined;
}

/** undefined when the file is missing, for instance because it was just removed. */
async function digestOfStream(store: Store, key: string): Promise<Digest | undefined> {
  const stream = await store.stream(key);
  if (stream === undefined) return undefined;
  const hash = createHash('sha256');
  for await (const piece of stream) hash.update(piece);
  return hash.digest('hex');
}

const howToRestore =
  'Restore the folder from a copy of the store, or start any run with the same data files, which writes the dataset again; then petrel resume';
