import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { at } from '../../../core/at.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { cutMicroBatch } from './micro-batch.ts';
import type { MicroBatch } from './micro-batch.ts';

interface Row {
  readonly prompt: readonly number[];
  readonly response: readonly number[];
}

function batchOf(rows: readonly Row[]): BatchTensors {
  const offsets = [0];
  const scoredOffsets = [0];
  const scored: number[] = [];
  for (const { prompt, response } of rows) {
    const start = at(offsets, -1);
    response.forEach((_, t) => scored.push(start + prompt.length + t));
    offsets.push(start + prompt.length + response.length);
    scoredOffsets.push(scored.length);
  }
  const perToken = new Float32Array(scored.length);
  return {
    tokens_N: Int32Array.from(rows.flatMap(({ prompt, response }) => [...prompt, ...response])),
    offsets_S1: Int32Array.from(offsets),
    scored_T: Int32Array.from(scored),
    scoredOffsets_S1: Int32Array.from(scoredOffsets),
    mask_T: new Uint8Array(scored.length).fill(1),
    advantages_T: perToken,
    returns_T: perToken,
    rewards_S: new Float32Array(rows.length),
    stepOffsets_U1: Int32Array.of(0, 1),
    microOffsets_M1: Int32Array.of(0, rows.length),
    microSamples: Int32Array.from(rows, (_, b) => b),
  };
}

/** The tokens that each scored position sees, and its target. */
function contexts({ packed }: MicroBatch): { readonly sees: number[]; readonly target: number }[] {
  const { tokens_N, cuSeqlens, parents_S, positions_P, targets_P } = packed;
  return Array.from(positions_P, (position, p) => {
    const sequence = cuSeqlens.findLastIndex((start) => start <= position);
    const parent = parents_S === undefined ? -1 : at(parents_S, sequence);
    const before = parent < 0 ? [] : [...tokens_N.slice(cuSeqlens[parent], cuSeqlens[parent + 1])];
    return { sees: [...before, ...tokens_N.slice(cuSeqlens[sequence], position + 1)], target: at(targets_P, p) };
  });
}

const tokens = (least: number, most: number) => fc.array(fc.nat({ max: 2 }), { minLength: least, maxLength: most });
const rows = fc
  .array(fc.record({ prompt: tokens(1, 4), responses: fc.array(tokens(0, 4), { minLength: 1, maxLength: 4 }) }), {
    minLength: 1,
    maxLength: 4,
  })
  .map((groups): Row[] =>
    groups.flatMap(({ prompt, responses }) => responses.map((response) => ({ prompt, response }))),
  );

describe('a micro-batch in the layout prefixTree', () => {
  it('shows each scored token what it sees in the flat layout, in the same order (property)', () => {
    fc.assert(
      fc.property(rows, (list) => {
        const batch = batchOf(list);
        const flat = cutMicroBatch(batch, batch.microSamples);
        const tree = cutMicroBatch(batch, batch.microSamples, 'prefixTree');
        expect(contexts(tree)).toEqual(contexts(flat));
        expect(tree.tokens_P).toEqual(flat.tokens_P);
        expect(tree.rowOffsets_S1).toEqual(flat.rowOffsets_S1);
        expect(flat.packed.parents_S).toBeUndefined();
      }),
    );
  });

  it('holds the prompt of neighbours once', () => {
    const batch = batchOf([
      { prompt: [1, 2, 3], response: [4, 5] },
      { prompt: [1, 2, 3], response: [6] },
      { prompt: [1, 2], response: [7] },
      { prompt: [1, 2, 3], response: [8] },
    ]);
    const { packed } = cutMicroBatch(batch, batch.microSamples, 'prefixTree');
    expect([...packed.tokens_N]).toEqual([1, 2, 3, 4, 5, 6, 1, 2, 7, 1, 2, 3, 8]);
    expect([...(packed.parents_S ?? [])]).toEqual([-1, 0, 0, -1, 3, -1, 5]);
    expect([...packed.positions_P]).toEqual([2, 3, 2, 7, 11]);
  });
});
