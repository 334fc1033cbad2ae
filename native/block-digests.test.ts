import { describe, expect, test } from 'vitest';
import { blockHashes } from '../core/parameters.ts';
import { stateParts } from '../core/records/state-parts.ts';
import { blockHasher } from '../log/objects/block-hasher.ts';
import { blockDigests, digestBytes, digestsBySoftware } from './block-digests.ts';
import { decoder, trainerOf } from './testing/decoders.ts';

/**
 * Sizes around a block of SHA-256 (64 bytes) with the padding that needs a second one, around a chunk of BLAKE3 (1
 * KiB), around 8 and 16 chunks at a time, and around a subtree of 128; the last block of a part is often shorter.
 */
const sizes = [
  ...[64, 68, 100, 112, 116, 120, 124, 128, 132, 1020, 1024, 1028, 2048, 2052, 3072, 4096, 7168, 8192, 8196, 16_384],
  ...[16_388, 17_408, 20_000, 24_576, 31_744, 33_792, 65_536, 131_068, 131_072, 131_076, 132_096, 135_168, 1 << 20],
];

describe.each(blockHashes)('digests of the blocks of a part are %s', (hash) => {
  test.each([1, 2, 3])('with %i threads', async (threads) => {
    const hasher = await blockHasher(hash);
    for (const vocab of [31, 32, 1033]) {
      const trainer = trainerOf(decoder({ vocab, hidden: vocab > 1000 ? 64 : 16 }), threads, { threads });
      trainer.write('m', trainer.read('weights').reverse());
      for (const part of stateParts) {
        const bytes = new Uint8Array(trainer.read(part).buffer);
        for (const blockBytes of sizes) {
          const found = Buffer.from(trainer.blockDigests(part, blockBytes, hash));
          const blocks = Math.ceil(bytes.length / blockBytes);
          // All of them of large blocks, some of small ones.
          for (let block = 0; block < blocks; block += blocks < 50 ? 1 : 37) {
            hasher.update(bytes.subarray(block * blockBytes, (block + 1) * blockBytes));
            const expected = hasher.digest();
            expect(
              found.subarray(block * digestBytes, (block + 1) * digestBytes).equals(expected),
              `${part}, vocab ${vocab}, block ${block} of ${blockBytes} bytes`,
            ).toBe(true);
          }
        }
      }
      trainer.close();
    }
  });
});

test('processors without instructions for SHA-256 get the same digests', () => {
  const trainer = trainerOf(decoder({ vocab: 33 }), 1);
  for (const blockBytes of sizes)
    expect(
      digestsBySoftware(new Uint8Array(trainer.read('weights').buffer), blockBytes).compare(
        trainer.blockDigests('weights', blockBytes, 'sha256'),
      ),
    ).toBe(0);
  trainer.close();
});

describe.each(blockHashes)('digests of the blocks of an array are %s', (hash) => {
  test.each([1, 2, 3])('with %i threads, wherever in memory it begins', async (threads) => {
    const hasher = await blockHasher(hash);
    const all = new Uint8Array(70_000).map((_, i) => (i * 2_654_435_761) >>> 13);
    for (const length of [0, 1, 63, 64, 65, 1025, 69_990])
      for (const blockBytes of [64, 1000, 1024, 16_384, 1 << 20]) {
        const bytes = all.subarray(length % 7, (length % 7) + length);
        const found = blockDigests(bytes, blockBytes, hash, threads);
        const expected: Uint8Array[] = [];
        for (let at = 0; at < length; at += blockBytes) {
          hasher.update(bytes.subarray(at, at + blockBytes));
          expected.push(hasher.digest());
        }
        expect(Buffer.from(found).equals(Buffer.concat(expected)), `${length} bytes, blocks of ${blockBytes}`).toBe(
          true,
        );
      }
  });

  test('refuse blocks that are too short', () => {
    expect(() => blockDigests(new Uint8Array(100), 63, hash, 1)).toThrow(/blockBytes/);
  });
});
