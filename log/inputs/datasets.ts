/**
 * Datasets in the store: reads and writes their files. models/dataset-fact.ts defines the contents of format 1,
 * models/dataset/stored-row.ts those of a block of format 2.
 */
import { createHash } from 'node:crypto';
import { damage } from '../../core/records/damage.ts';
import type { PauseError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { blockName, datasetIndex, datasetIndexName } from '../../core/records/dataset-index.ts';
import type { DatasetBlock, DatasetIndex } from '../../core/records/dataset-index.ts';
import { keys } from '../../core/records/keys.ts';
import { isIntact } from '../objects/blobs.ts';
import { digestOf, sha256 } from '../objects/digest.ts';

/** Files of a dataset of format 1. */
const tokensName = 'tokens.safetensors';
const rowsName = 'rows.jsonl';

/** File names with their bytes; the digest names all of them. Format 1. */
export async function storeDataset(store: Store, files: Readonly<Record<string, Uint8Array>>): Promise<Digest> {
  const digest = digestOfFiles(1, files);
  for (const [name, bytes] of Object.entries(files)) await putChecked(store, keys.dataset(digest, name), bytes);
  return digest;
}

/** Digest of a dataset by its format and the files that name all others. */
export function digestOfFiles(format: 1 | 2, files: Readonly<Record<string, Uint8Array>>): Digest {
  const hashes = Object.entries(files).map(([name, bytes]) => [name, sha256(bytes)]);
  return digestOf({ format, files: Object.fromEntries(hashes) });
}

/** Writes the files that are missing or damaged. */
export async function putChecked(
  store: Store,
  key: string,
  bytes: Uint8Array,
  hash: Digest = sha256(bytes),
): Promise<void> {
  if (!(await isIntact(store, key, bytes.byteLength, hash))) await store.put(key, bytes);
}

/** An open dataset. `name`: its folder. Blocks are checked when they are read. */
export type StoredDataset =
  | { readonly format: 1; readonly name: string; readonly tokens: Uint8Array; readonly rows: Uint8Array }
  | {
      readonly format: 2;
      readonly name: string;
      readonly index: DatasetIndex;
      /** Throws PauseError `DamagedDataset` that names the block. */
      readonly block: (block: DatasetBlock) => Promise<Uint8Array>;
    };

/** Throws PauseError `DamagedDataset` when the rows of format 1 or the index are missing or do not match the digest. */
export async function readDataset(store: Store, digest: Digest): Promise<StoredDataset> {
  const name = `datasets/${digest}`;
  const index = await readIndex(store, digest);
  if (index !== undefined) return { format: 2, name, index, block: (block) => readBlock(store, digest, block) };
  const [tokens, rows] = await readDatasetFiles(store, digest, [tokensName, rowsName]);
  return { format: 1, name, tokens: tokens ?? new Uint8Array(), rows: rows ?? new Uint8Array() };
}

/** Format of a dataset's files, damaged or not. */
export async function datasetFormat(store: Store, digest: Digest): Promise<1 | 2> {
  return (await store.head(keys.dataset(digest, rowsName))) === undefined ? 2 : 1;
}

/** Reads all of a dataset. Resolves with its size in bytes; throws as `readDataset` and `block` do. */
export async function checkDataset(store: Store, digest: Digest): Promise<number> {
  const stored = await readDataset(store, digest);
  if (stored.format === 1) return stored.tokens.byteLength + stored.rows.byteLength;
  let bytes = (await store.head(keys.dataset(digest, datasetIndexName))) ?? 0;
  for (const block of stored.index.blocks) bytes += (await stored.block(block)).byteLength;
  return bytes;
}

/** Undefined when there is none: a dataset of format 1, or a missing one. */
async function readIndex(store: Store, digest: Digest): Promise<DatasetIndex | undefined> {
  const key = keys.dataset(digest, datasetIndexName);
  const bytes = await store.get(key);
  if (bytes === undefined) return undefined;
  const index = indexOf(digest, bytes);
  if (index === undefined) throw damaged(key, 'it does not match its name');
  return index;
}

/** Undefined when the bytes are not this dataset's index. */
function indexOf(digest: Digest, bytes: Uint8Array): DatasetIndex | undefined {
  if (digestOfFiles(2, { [datasetIndexName]: bytes }) !== digest) return undefined;
  return datasetIndex.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
}

async function readBlock(
  store: Store,
  digest: Digest,
  { firstRow, rows, bytes, sha256: expected }: DatasetBlock,
): Promise<Uint8Array> {
  const key = keys.dataset(digest, blockName(expected));
  const what = `the block of rows ${firstRow} to ${firstRow + rows - 1}`;
  const stream = await store.stream(key);
  if (stream === undefined) throw damaged(key, `${what} is missing`);
  const hash = createHash('sha256');
  const pieces: Uint8Array[] = [];
  let read = 0;
  for await (const piece of stream) {
    hash.update(piece);
    read += piece.byteLength;
    if (read > bytes) break; // never more in memory than the index announced
    pieces.push(piece);
  }
  if (read !== bytes || hash.digest('hex') !== expected) throw damaged(key, `${what} does not match its name`);
  return Buffer.concat(pieces);
}

/** Reads the files of format 1 back and checks them against the digest. Throws PauseError `DamagedDataset`. */
export async function readDatasetFiles(store: Store, digest: Digest, names: readonly string[]): Promise<Uint8Array[]> {
  const found = await Promise.all(names.map((name) => store.get(keys.dataset(digest, name))));
  const files = Object.fromEntries(names.map((name, i) => [name, found[i] ?? new Uint8Array()]));
  if (digestOfFiles(1, files) !== digest)
    throw damaged(`datasets/${digest}`, 'absent, or its bytes do not match its name');
  return found.map((bytes) => bytes ?? new Uint8Array());
}

/** The names of all files that petrel wrote for a dataset; undefined when the folder is not petrel's. */
export async function datasetFiles(store: Store, digest: Digest): Promise<readonly string[] | undefined> {
  const names = (await store.children(keys.dataset(digest, ''))).filter((name) => !name.endsWith('/'));
  const bytes = names.includes(datasetIndexName) ? await store.get(keys.dataset(digest, datasetIndexName)) : undefined;
  const index = bytes && indexOf(digest, bytes);
  if (index !== undefined) return [...new Set(index.blocks.map((block) => blockName(block.sha256))), datasetIndexName];
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

const damaged = (key: string, what: string): PauseError => damage('DamagedDataset', key, what, howToRestore);

const howToRestore =
  'Restore the folder from a copy of the store, or start any run with the same data files, which writes the dataset again; then petrel resume';
