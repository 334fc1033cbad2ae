import { createHash } from 'node:crypto';
import { native } from './binding.ts';

const digestBytes = 32;

/** SHA-256 [blocks][32] of each block of an array, on several threads where the processor has instructions for it. */
export function blockDigests(flat: Float32Array, blockBytes: number, threads: number): Uint8Array {
  const digests = new Uint8Array(Math.ceil(flat.byteLength / blockBytes) * digestBytes);
  if (flat.byteLength > 0 && native().sha256Blocks(flat, blockBytes, threads, digests)) return digests;
  return blockDigestsBySoftware(flat, blockBytes);
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
