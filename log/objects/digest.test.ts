import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { blake3 } from 'hash-wasm';
import { describe, expect, it } from 'vitest';
import { blockHashes } from '../../core/parameters.ts';
import type { BlockHash } from '../../core/parameters.ts';
import { blockHasher } from './block-hasher.ts';
import { blockBytes, stateDigestsOf, treeDigest, TreeDigest, treeRoot } from './digest.ts';
import { stateDigests } from '../../tests/state-digests.ts';

describe.each(blockHashes)('the tree digest over blocks by %s', (hash) => {
  it('is the same however the array is cut into pieces, also across blocks', async () => {
    const flat = Float32Array.from({ length: blockBytes / 4 + 1000 }, (_, i) => i % 977);
    const hasher = await blockHasher(hash);
    const whole = treeDigest(flat, hasher);
    expect(treeRoot(flat.byteLength, await leavesOf(flat, hash), hash)).toBe(whole);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: flat.length }), { maxLength: 4 }), (cuts) => {
        const tree = new TreeDigest(flat.byteLength, hasher);
        const sorted = [0, ...cuts.sort((a, b) => a - b), flat.length];
        for (let i = 1; i < sorted.length; i++) tree.add(flat.subarray(sorted[i - 1], sorted[i]));
        return tree.root() === whole;
      }),
      { numRuns: 10 },
    );
  });

  it('refuses more bytes than were announced', async () => {
    const tree = new TreeDigest(8, await blockHasher(hash));
    tree.add(Float32Array.of(1));
    expect(() => tree.root()).toThrow(RangeError);
  });
});

async function leavesOf(flat: Float32Array, hash: BlockHash): Promise<Buffer> {
  const bytes = new Uint8Array(flat.buffer);
  const leaves: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const block = bytes.subarray(at, at + blockBytes);
    leaves.push(
      hash === 'sha256' ? createHash('sha256').update(block).digest() : Buffer.from(await blake3(block), 'hex'),
    );
  }
  return Buffer.concat(leaves);
}

describe('the tree digest', () => {
  it('depends on the hash of its blocks', async () => {
    const flat = Float32Array.of(1, 2, 3);
    expect(treeDigest(flat, await blockHasher('blake3'))).not.toBe(treeDigest(flat, await blockHasher('sha256')));
  });

  it('of a state depends on its parts and its optimizer steps', () => {
    const state = { weights: Float32Array.of(1, 2), m: Float32Array.of(3, 4), v: Float32Array.of(5, 6), steps: 7 };
    const roots = { weights: treeDigest(state.weights), m: treeDigest(state.m), v: treeDigest(state.v) };
    expect(stateDigests(state)).toEqual(stateDigestsOf(roots, 7));
    expect(stateDigestsOf(roots, 8).stateDigest).not.toBe(stateDigestsOf(roots, 7).stateDigest);
  });
});
