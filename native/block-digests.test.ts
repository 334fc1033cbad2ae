import { expect, test } from 'vitest';
import { blockDigests, blockDigestsBySoftware } from './block-digests.ts';
import { randomOf } from './testing/decoders.ts';

/** Lengths around a block of SHA-256 (64 bytes), the padding that needs a second one, and several blocks of the tree. */
const lengths = [1, 12, 13, 14, 15, 16, 17, 29, 30, 31, 32, 33, 64, 255, 256, 257, 511, 512, 513, 1023, 1536, 2000];

test.each([1, 2, 3])('digests of blocks are SHA-256, whatever the length, with %i threads', (threads) => {
  const random = randomOf(threads);
  for (const length of lengths) {
    // An offset in a larger buffer: the array need not be aligned.
    const flat = new Float32Array(length + 1).map(() => random() - 0.5).subarray(1);
    for (const blockBytes of [64, 100, 1024, 4096])
      expect(blockDigests(flat, blockBytes, threads), `${length} values in blocks of ${blockBytes} bytes`).toEqual(
        blockDigestsBySoftware(flat, blockBytes),
      );
  }
  expect(blockDigests(new Float32Array(0), 64, threads)).toEqual(new Uint8Array(0));
});
