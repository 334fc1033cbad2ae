/**
 * Blocks of a dataset of format 2 that wait until its last row has been read: only then is its digest known. They are
 * kept in a temporary folder; a single block stays in memory.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { blockName, datasetIndexName } from '../../core/records/dataset-index.ts';
import type { DatasetBlock, DatasetIndex, DatasetRules } from '../../core/records/dataset-index.ts';
import { keys } from '../../core/records/keys.ts';
import { digestOfFiles, putChecked } from './datasets.ts';

export class WaitingBlocks {
  readonly #blocks: DatasetBlock[] = [];
  readonly #scratch: string;
  readonly #folder: string;
  /** The only block so far. */
  #single: Uint8Array | undefined;
  #rows = 0;

  /** `scratch`: the folder in which the temporary folder is created when it is needed. */
  constructor(scratch: string) {
    this.#scratch = scratch;
    this.#folder = join(scratch, `rows-${process.pid}-${randomBytes(4).toString('hex')}`);
  }

  async add(bytes: Uint8Array, rows: number): Promise<void> {
    const block = { firstRow: this.#rows, rows, bytes: bytes.byteLength, sha256: await digestInTurns(bytes) };
    const [first] = this.#blocks;
    if (first === undefined) this.#single = bytes;
    else {
      if (this.#single !== undefined) {
        await removeAbandoned(this.#scratch);
        await this.#write(this.#single, first.sha256);
      }
      this.#single = undefined;
      await this.#write(bytes, block.sha256);
    }
    this.#blocks.push(block);
    this.#rows += rows;
  }

  /** Stores the dataset. Blocks that exist already are checked and kept. */
  async store(store: Store, rules: DatasetRules): Promise<Digest> {
    const index: DatasetIndex = { format: 2, ...rules, rows: this.#rows, blocks: this.#blocks };
    const bytes = new TextEncoder().encode(JSON.stringify(index));
    const digest = digestOfFiles(2, { [datasetIndexName]: bytes });
    // The index is written first: it tells the janitor that the folder is petrel's, even when this process dies
    // halfway.
    await putChecked(store, keys.dataset(digest, datasetIndexName), bytes);
    for (const { sha256 } of this.#blocks)
      await putChecked(store, keys.dataset(digest, blockName(sha256)), await this.#read(sha256), sha256);
    return digest;
  }

  /** Deletes the temporary folder. */
  remove(): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true });
  }

  async #read(sha256: Digest): Promise<Uint8Array> {
    return this.#single ?? readFile(join(this.#folder, sha256));
  }

  async #write(bytes: Uint8Array, sha256: Digest): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#folder, sha256), bytes, { mode: 0o600 });
  }
}

const dayMs = 24 * 60 * 60 * 1000;

/** Deletes the leftovers of processes that were killed: folders to which nothing was written for a day. */
async function removeAbandoned(scratch: string): Promise<void> {
  const names = await readdir(scratch).catch(() => []); // the folder is created when it is needed
  for (const name of names.filter((one) => /^rows-\d+-[0-9a-f]{8}$/.test(one))) {
    const written = await stat(join(scratch, name)).catch(() => undefined);
    if (written !== undefined && Date.now() - written.mtimeMs > dayMs)
      await rm(join(scratch, name), { recursive: true, force: true });
  }
}

const turnBytes = 1 << 20;

/** Hashes in parts: after every MiB the event loop gets a turn. */
async function digestInTurns(bytes: Uint8Array): Promise<Digest> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.byteLength; at += turnBytes) {
    hash.update(bytes.subarray(at, at + turnBytes));
    await nextTurn();
  }
  return hash.digest('hex');
}
