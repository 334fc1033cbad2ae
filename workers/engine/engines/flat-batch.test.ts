import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { at } from '../../../core/at.ts';
import type { PackedBatch } from '../../../core/ports/policy.ts';
import { flatBatch } from './flat-batch.ts';

/** The tokens that decide each wanted output: those up to its position, with the prompt's before them. */
function contexts({ tokens_N, cuSeqlens, parents_S, positions_P }: PackedBatch): number[][] {
  return Array.from(positions_P, (position) => {
    const s = cuSeqlens.findIndex((end) => end > position) - 1;
    const parent = parents_S?.[s] ?? -1;
    const prompt = parent === -1 ? [] : tokens_N.subarray(at(cuSeqlens, parent), at(cuSeqlens, parent + 1));
    return [...prompt, ...tokens_N.subarray(at(cuSeqlens, s), position + 1)];
  });
}

const batches = fc
  .array(fc.record({ length: fc.integer({ min: 1, max: 5 }), continues: fc.option(fc.nat()) }), { minLength: 1 })
  .chain((sequences) => {
    const offsets = [0];
    const parents: number[] = [];
    for (const { length, continues } of sequences) {
      const roots = parents.flatMap((parent, s) => (parent === -1 ? [s] : []));
      parents.push(continues === null || roots.length === 0 ? -1 : at(roots, continues % roots.length));
      offsets.push(at(offsets, -1) + length);
    }
    const tokens = at(offsets, -1);
    return fc.array(fc.nat(tokens - 1), { maxLength: 12 }).map(
      (positions): PackedBatch => ({
        tokens_N: Int32Array.from({ length: tokens }, (_, i) => i),
        cuSeqlens: Int32Array.from(offsets),
        parents_S: Int32Array.from(parents),
        positions_P: Int32Array.from(positions),
        targets_P: Int32Array.from(positions, (position) => position + 1),
      }),
    );
  });

describe('a flat batch', () => {
  it('wants the same outputs of the same tokens, without sequences that continue others', () => {
    fc.assert(
      fc.property(batches, (batch) => {
        const flat = flatBatch(batch);
        expect(flat.parents_S?.every((parent) => parent === -1) ?? true).toBe(true);
        expect(contexts(flat)).toEqual(contexts(batch));
        expect(flat.targets_P).toEqual(batch.targets_P);
        expect(at(flat.cuSeqlens, -1)).toBe(flat.tokens_N.length);
      }),
    );
  });
});
