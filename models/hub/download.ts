/** Downloads one file: continues after a broken transfer, and verifies the file before it gets its name. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidInputError, RetryableError } from '../../core/errors.ts';
import type { HubFile } from './files.ts';
import type { HubCommit } from './hub.ts';

export interface DownloadOptions {
  /** Broken transfers in a row, without progress, before it fails. */
  readonly attempts?: number;
  readonly retryMs?: number;
  readonly onBytes?: (bytes: number) => void;
}

/**
 * Throws RetryableError when the transfer keeps breaking, InvalidInputError when the file does not match the listing.
 */
export async function download(
  model: HubCommit,
  file: HubFile,
  target: string,
  options: DownloadOptions = {},
): Promise<void> {
  const partial = `${target}.partial`;
  for (let round = 0; ; round++) {
    await fetchRest(model, file, partial, options);
    if (await isWhole(partial, file)) break;
    await rm(partial, { force: true });
    if (round === 1)
      throw new InvalidInputError(
        `${model.name}: ${file.path} arrived with another checksum than the hub lists, twice`,
        { hint: 'Try again later, or another revision.' },
      );
  }
  await rename(partial, target);
}

async function fetchRest(
  model: HubCommit,
  file: HubFile,
  partial: string,
  { attempts = 5, retryMs = 500, onBytes }: DownloadOptions,
): Promise<void> {
  let failures = 0;
  for (let have = await sizeOf(partial); have < file.size; ) {
    const before = have;
    let problem: unknown;
    try {
      have = await append(await model.read(file, have), partial, have, file.size, onBytes);
    } catch (error) {
      if (error instanceof InvalidInputError) throw error;
      problem = error;
      have = await sizeOf(partial);
    }
    if (have >= file.size) return;
    failures = have > before ? 0 : failures + 1;
    if (failures >= attempts) {
      const reason = problem instanceof Error ? problem.message : String(problem ?? 'it ended early');
      throw new RetryableError(
        'HubTransfer',
        `${model.name}: ${file.path} broke off at byte ${have} of ${file.size}: ${reason}`,
        { cause: problem, hint: 'start again: the download continues from there' },
      );
    }
    await sleep(retryMs * 2 ** failures);
  }
  if (file.size === 0) await (await open(partial, 'w')).close();
}

/** Appends received bytes, at most up to the file's size. Returns the new size. */
async function append(
  source: AsyncIterable<Uint8Array>,
  partial: string,
  from: number,
  size: number,
  onBytes: DownloadOptions['onBytes'],
): Promise<number> {
  const handle = await open(partial, 'a');
  let have = from;
  try {
    for await (const chunk of source) {
      const bytes = chunk.subarray(0, size - have);
      await handle.appendFile(bytes);
      have += bytes.length;
      onBytes?.(bytes.length);
      if (have === size) break;
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  return have;
}

/** Size and checksum: SHA-256 of a large file, git's blob id of a small one. */
export async function isWhole(path: string, file: HubFile): Promise<boolean> {
  if ((await sizeOf(path)) !== file.size) return false;
  if (file.digest === undefined) return true;
  const hash = file.digest.type === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${file.size}\0`);
  for await (const chunk of createReadStream(path)) hash.update(chunk as Uint8Array);
  return hash.digest('hex') === file.digest.hex;
}

/** Bytes of a file that exist locally, complete or from an earlier attempt. */
export async function fetchedBytes(target: string): Promise<number> {
  return (await sizeOf(target)) || sizeOf(`${target}.partial`);
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}
