import { createHash } from 'node:crypto';
import { native } from './binding.ts';

const digestBytes = 32;
/** Blocks between two calls of `onProgress`. */
const blocksAtOnce = 32;

/**
 * SHA-256 [blocks][32] of each block of an array, on several threads where the processor has instructions for it.
 * `blockBytes` is a multiple of 4. `onProgress` is called after every few blocks.
 */
export function blockDigests(
  flat: Float32Array,
  blockBytes: number,
  threads: number,
  onProgress?: () => void,
): Uint8Array {
  const blocks = Math.ceil(flat.byteLength / blockBytes);
  const digests = new Uint8Array(blocks * digestBytes);
  const values = blockBytes / Float32Array.BYTES_PER_ELEMENT;
  for (let from = 0; from < blocks; from += blocksAtOnce) {
    const to = Math.min(blocks, from + blocksAtOnce);
    const some = flat.subarray(from * values, to * values);
    const into = digests.subarray(from * digestBytes, to * digestBytes);
    if (!native().sha256Blocks(some, blockBytes, threads, into)) into.set(blockDigestsBySoftware(some, blockBytes));
    onProgress?.();
  }
  return digests;
}

export function blockDigestsBySoftware(flat: Float32Array, blockBytes: number): Uint8Array {
  const bytes = new Uint8Array(flat.buffer, flat.byteOffset, flat.byteLength);
  const digests = new Uint8Array(Math.ceil(bytes.length / blockBytes) * digestBytes);
  for (let block = 0; block * blockBytes < bytes.length; block++) {
    const leaf = bytes.subarray(block * blockBytes, (block + 1) * blockBytes);
    digests.set(createHash('sha256').update(leaf).digest(), block * digestBytes);
  }
  return digests;
}
