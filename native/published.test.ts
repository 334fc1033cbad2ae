/** Weights as they are published: which values, their bytes, and the digests of these. */
import { afterEach, describe, expect, it } from 'vitest';
import { at } from '../core/at.ts';
import { publishedBytes, publishedTensors } from '../core/records/publications.ts';
import { blockHasher } from '../log/objects/block-hasher.ts';
import { digestBytes } from './block-digests.ts';
import { randomInteger, randomNumbers, randomShape } from './testing/generation.ts';
import { engineInfo } from './index.ts';
import type { NativeTrainer } from './index.ts';
import { decoder, trainerOf } from './testing/decoders.ts';

const open: NativeTrainer[] = [];
afterEach(() => open.splice(0).forEach((trainer) => trainer.close()));

function model(seed: number, threads = 1, spec = decoder(randomShape(randomNumbers(seed)))): NativeTrainer {
  const trainer = trainerOf(spec, seed, { compute: 'bf16', deterministic: false, trainable: false, threads });
  open.push(trainer);
  return trainer;
}

function published(trainer: NativeTrainer): Uint8Array {
  const bytes = new Uint8Array(publishedBytes(trainer.parameters, 'BF16'));
  trainer.readPublished('BF16', 0, bytes);
  return bytes;
}

/** Rounds to nearest even, as the processor does it: denormal numbers become zeros of their sign. */
function roundedBits(bits: number): number {
  const exponent = (bits >>> 23) & 255;
  if (exponent === 0) return (bits >>> 16) & 0x8000;
  if (exponent === 255 && (bits & 0x7fffff) !== 0) return (bits >>> 16) | 0x40;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** Some numbers of each kind of fp32, and of every exponent. */
function allKinds(count: number, seed: number): Uint32Array {
  const random = randomNumbers(seed);
  const tails = [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff];
  return Uint32Array.from({ length: count }, () => {
    const upper = randomInteger(random, 0, 0xffff);
    return (
      ((upper << 16) | (random() < 0.5 ? at(tails, randomInteger(random, 0, 5)) : randomInteger(random, 0, 0xffff))) >>>
      0
    );
  });
}

const can = engineInfo().bf16;

describe.skipIf(!can)('weights that are published in bf16 (skipped: needs AVX512_BF16)', () => {
  it.each([1, 2, 3, 4])('are matrices rounded to nearest even, and all else as it is (seed %i)', (seed) => {
    const trainer = model(seed);
    const bits = allKinds(trainer.elements, seed);
    trainer.write('weights', new Float32Array(bits.buffer));
    const bytes = published(trainer);
    const view = new DataView(bytes.buffer);
    for (const { name, shape, dtype, start, end, firstByte } of publishedTensors(trainer.parameters, 'BF16')) {
      expect(dtype, name).toBe(shape.length === 2 && name !== 'model.embed_tokens.weight' ? 'BF16' : 'F32');
      for (let i = start; i < end; i++) {
        const found =
          dtype === 'F32'
            ? view.getUint32(firstByte + 4 * (i - start), true)
            : view.getUint16(firstByte + 2 * (i - start), true);
        const value = at(bits, i);
        if (found !== (dtype === 'F32' ? value : roundedBits(value)))
          expect.fail(`${name}: ${value.toString(16)} became ${found.toString(16)}`);
      }
    }
  });

  it.each([5, 6, 7])('are read and written in pieces that end anywhere (seed %i)', (seed) => {
    const [from, to] = [model(seed), model(seed)];
    to.write('weights', new Float32Array(allKinds(to.elements, seed).buffer));
    const random = randomNumbers(seed);
    const bytes = published(from);
    const sink = to.publishedWriter('BF16', 0, bytes.length);
    for (let start = 0; start < bytes.length; ) {
      const piece = new Uint8Array(Math.min(randomInteger(random, 0, 5000), bytes.length - start));
      from.readPublished('BF16', start, piece);
      expect(Buffer.from(piece).equals(bytes.subarray(start, start + piece.length))).toBe(true);
      sink(piece);
      start += piece.length;
    }
    expect(Buffer.from(published(to)).equals(bytes)).toBe(true);
    // Nothing is left of what was there before: a rounded value has no lower half.
    const values = new Uint32Array(to.read('weights').buffer);
    for (const { dtype, start, end } of publishedTensors(to.parameters, 'BF16'))
      if (dtype === 'BF16') expect(values.subarray(start, end).every((value) => (value & 0xffff) === 0)).toBe(true);
    expect(() => sink(new Uint8Array(1))).toThrow(RangeError);
  });

  it.each([1, 2, 3])('have the digests of their bytes, with %i threads', async (threads) => {
    const hasher = await blockHasher('blake3');
    const large = decoder({ vocab: 9001, hidden: 64 }); // more than a subtree of BLAKE3 in one block
    for (const [seed, spec] of [8, 9, 10].map((one) => [one, one === 10 ? large : undefined] as const)) {
      const trainer = model(seed, threads, spec);
      const bytes = published(trainer);
      for (const blockBytes of [64, 1000, 1024, 4096, 16_384, 16_388, 33_792, 1 << 20, 8 << 20]) {
        const found = Buffer.from(trainer.publishedDigests(blockBytes));
        expect(found).toHaveLength(Math.ceil(bytes.length / blockBytes) * digestBytes);
        for (let block = 0; block * blockBytes < bytes.length; block += blockBytes < 4096 ? 37 : 1) {
          hasher.update(bytes.subarray(block * blockBytes, (block + 1) * blockBytes));
          const there = found.subarray(block * digestBytes, (block + 1) * digestBytes);
          expect(there.equals(hasher.digest()), `block ${block} of ${blockBytes} bytes, seed ${seed}`).toBe(true);
        }
      }
    }
  });
});

it('a model in fp32 publishes its values as they are, and nothing in bf16', () => {
  const trainer = trainerOf(decoder(), 1);
  open.push(trainer);
  const bytes = new Uint8Array(publishedBytes(trainer.parameters, 'F32') - 3);
  trainer.readPublished('F32', 3, bytes);
  expect(Buffer.from(bytes).equals(Buffer.from(trainer.read('weights').buffer).subarray(3))).toBe(true);
  expect(() => trainer.readPublished('BF16', 0, bytes)).toThrow(/F32 for a model that computes in fp32/);
});
