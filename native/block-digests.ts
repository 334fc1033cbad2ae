/** Digests [blocks][32] of each block of an array: the leaves of the digest of a state (log/objects/digest.ts). */
import { createHash } from 'node:crypto';
import type { BlockHash } from '../core/parameters.ts';
import { native } from './binding.ts';

export const digestBytes = 32;

/** Threads divide the blocks. `blockBytes`: at least 64. The last block may be shorter. */
export function blockDigests(bytes: Uint8Array, blockBytes: number, hash: BlockHash, threads: number): Uint8Array {
  const digests = new Uint8Array(Math.ceil(bytes.length / blockBytes) * digestBytes);
  return native().blockDigests(bytes, blockBytes, digests, hash, threads)
    ? digests
    : digestsBySoftware(bytes, blockBytes);
}

/** SHA-256, for processors without instructions for it. */
export function digestsBySoftware(bytes: Uint8Array, blockBytes: number): Buffer {
  const digests = Buffer.alloc(Math.ceil(bytes.length / blockBytes) * digestBytes);
  for (let block = 0; block * blockBytes < bytes.length; block++) {
    const leaf = bytes.subarray(block * blockBytes, (block + 1) * blockBytes);
    digests.set(createHash('sha256').update(leaf).digest(), block * digestBytes);
  }
  return digests;
}
