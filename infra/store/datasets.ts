/** Dataset facts in the store: bytes in and out; what they hold is models/dataset-fact.ts. */
import { TerminalError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { digestOf, sha256 } from './digest.ts';

/** File names with their bytes; the digest names all of them. */
export async function storeDataset(store: Store, files: Readonly<Record<string, Uint8Array>>): Promise<Digest> {
  const digest = digestOf({ format: 1, files: Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, sha256(bytes)])) });
  for (const [name, bytes] of Object.entries(files)) {
    const key = keys.dataset(digest, name);
    if ((await store.head(key)) !== bytes.byteLength) await store.put(key, bytes);
  }
  return digest;
}

/** Reads the files back and checks them against the digest. Throws TerminalError `DamagedDataset`. */
export async function readDatasetFiles(store: Store, digest: Digest, names: readonly string[]): Promise<Uint8Array[]> {
  const found = await Promise.all(names.map((name) => store.get(keys.dataset(digest, name))));
  const files = Object.fromEntries(names.map((name, i) => [name, sha256(found[i] ?? new Uint8Array())]));
  if (digestOf({ format: 1, files }) !== digest) {
    throw new TerminalError('DamagedDataset', `datasets/${digest}: absent, or its bytes do not match its name`, {
      where: `datasets/${digest}`,
      hint: 'Start the run again with the same data files: the dataset is written anew',
    });
  }
  return found.map((bytes) => bytes ?? new Uint8Array());
}
