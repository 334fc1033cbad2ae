/** SHA-256 [blocks][32] of each block of an array, for processors without instructions for it. */
import { createHash } from 'node:crypto';

export const digestBytes = 32;

export function digestsBySoftware(flat: Float32Array, blockBytes: number): Buffer {
  const bytes = new Uint8Array(flat.buffer, flat.byteOffset, flat.byteLength);
  const digests = Buffer.alloc(Math.ceil(bytes.length / blockBytes) * digestBytes);
  for (let block = 0; block * blockBytes < bytes.length; block++) {
    const leaf = bytes.subarray(block * blockBytes, (block + 1) * blockBytes);
    digests.set(createHash('sha256').update(leaf).digest(), block * digestBytes);
  }
  return digests;
}
