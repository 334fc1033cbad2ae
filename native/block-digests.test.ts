import { expect, test } from 'vitest';
import { stateParts } from '../core/ports/policy.ts';
import { digestsBySoftware } from './block-digests.ts';
import { decoder, trainerOf } from './testing/decoders.ts';

/** Sizes around a block of SHA-256 (64 bytes) and the padding that needs a second one; the last block is often shorter. */
const sizes = [64, 68, 100, 112, 116, 120, 124, 128, 132, 1024, 4096, 20_000, 1 << 20];

test.each([1, 2, 3])('digests of the blocks of a part are SHA-256, with %i threads', (threads) => {
  for (const vocab of [31, 32, 33]) {
    const trainer = trainerOf(decoder({ vocab }), threads, { threads });
    trainer.write('m', trainer.read('weights').reverse());
    for (const part of stateParts)
      for (const blockBytes of sizes)
        expect(
          digestsBySoftware(trainer.read(part), blockBytes).compare(trainer.blockDigests(part, blockBytes)),
          `${part}, vocab ${vocab}, blocks of ${blockBytes}`,
        ).toBe(0);
    trainer.close();
  }
});
