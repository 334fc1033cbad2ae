import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blockBytes, stateDigestsOf, treeDigest, TreeDigest } from './digest.ts';
import { stateDigests } from '../../tests/state-digests.ts';

describe('the tree digest', () => {
  it('is the same however the array is cut into pieces, also across blocks', () => {
    const flat = Float32Array.from({ length: blockBytes / 4 + 1000 }, (_, i) => i % 977);
    const whole = treeDigest(flat);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: flat.length }), { maxLength: 4 }), (cuts) => {
        const tree = new TreeDigest(flat.byteLength);
        const sorted = [0, ...cuts.sort((a, b) => a - b), flat.length];
        for (let i = 1; i < sorted.length; i++) tree.add(flat.subarray(sorted[i - 1], sorted[i]));
        return tree.root() === whole;
      }),
      { numRuns: 10 },
    );
  });

  it('refuses more bytes than were announced', () => {
    const tree = new TreeDigest(8);
    tree.add(Float32Array.of(1));
    expect(() => tree.root()).toThrow(RangeError);
  });

  it('of a state depends on its parts and its optimizer steps', () => {
    const state = { weights: Float32Array.of(1, 2), m: Float32Array.of(3, 4), v: Float32Array.of(5, 6), steps: 7 };
    const roots = { weights: treeDigest(state.weights), m: treeDigest(state.m), v: treeDigest(state.v) };
    expect(stateDigests(state)).toEqual(stateDigestsOf(roots, 7));
    expect(stateDigestsOf(roots, 8).stateDigest).not.toBe(stateDigestsOf(roots, 7).stateDigest);
  });
});
