import { describe, expect, it } from 'vitest';
import { encodeSafetensors } from '../../models/safetensors.ts';
import { f32, i32, u8 } from '../../models/trajectories.ts';
import type { Objects } from './objects.ts';
import type { Batch, Scores } from './records.ts';
import { compareSequences, placedSamples, sourceName, sourcesOf } from './sequences.ts';
import type { BatchRules, RewardMix, Sources } from './sequences.ts';
import { DamagedTensors, readTensors } from './tensors.ts';
import type { Tensors } from './tensors.ts';

/** One sample with the reward 2.5, the score 1 of the scorer and 4 of a reward model. */
const plain = {
  tokens: i32(Int32Array.of(5, 6)),
  offsets: i32(Int32Array.of(0, 2)),
  scored: i32(Int32Array.of(1)),
  scored_offsets: i32(Int32Array.of(0, 1)),
  mask: u8(Uint8Array.of(1)),
  rewards: f32(Float32Array.of(2.5)),
  model_scores: f32(Float32Array.of(4)),
};
const tensors = readTensors(encodeSafetensors(plain, {}));
const batch = { draws: [{ draw: 0, row: 3, fate: 'trained', samples: [0] }] } as unknown as Batch;
const sources = new Map([
  [
    sourceName(0, 0),
    { row: 3, prompt: Int32Array.of(5), response: Int32Array.of(6), logProbs: new Int32Array(1), score: 1 },
  ],
]);

const faultsWith = (mix?: RewardMix) => faultsIn(tensors, sources, { rejects: false, mix });

function faultsIn(tensors: Tensors, sources: Sources, rules: BatchRules): string[] {
  const found: string[] = [];
  const faults = {
    add: (_key: string, _expected: string, what: string) => found.push(what),
    equal: (_key: string, what: string, expected: unknown, there: unknown) => {
      if (expected !== there) found.push(what);
    },
  };
  const objects = { faults } as unknown as Objects;
  const placed = placedSamples(objects, batch, 'batch', sources);
  try {
    compareSequences(objects, 'tensors', tensors, placed, rules);
  } catch (error) {
    if (!(error instanceof DamagedTensors)) throw error;
    found.push(error.message);
  }
  return found;
}

describe('the rewards of a batch', () => {
  it('are the weighted scores of the reward model and of the scorer', () => {
    expect(faultsWith({ weight: 0.5, scorerWeight: 0.5 })).toEqual([]);
  });

  it('are refused with other weights', () => {
    expect(faultsWith({ weight: 1, scorerWeight: 0 })).toEqual(['another reward than 4']);
  });

  it('are the scores of the scorer where there is no reward model', () => {
    expect(faultsWith()).toEqual(['another reward than 1']);
  });
});

describe('the columns of the tokens of a batch', () => {
  const routes = { dtype: 'I32', shape: [1, 2], data: Int32Array.of(7, 8) } as const;
  const price = { dtype: 'F32', shape: [1, 1], data: Float32Array.of(0.5) } as const;
  const withColumns = (columns: object) => {
    const { tokens, offsets, scored, scored_offsets, mask, rewards } = plain;
    return readTensors(encodeSafetensors({ tokens, offsets, scored, scored_offsets, mask, rewards, ...columns }, {}));
  };
  /** The trajectory of the sample, with these columns. */
  const sampled = (columns: object, table: object = {}) =>
    sourcesOf(
      readTensors(
        encodeSafetensors(
          {
            draw_offsets: i32(Int32Array.of(0, 1)),
            draw: i32(Int32Array.of(0)),
            row: i32(Int32Array.of(3)),
            prompt_tokens: i32(Int32Array.of(5)),
            prompt_offsets: i32(Int32Array.of(0, 1)),
            prompt: i32(Int32Array.of(0)),
            response_tokens: i32(Int32Array.of(6)),
            response_offsets: i32(Int32Array.of(0, 1)),
            log_probs: f32(new Float32Array(1)),
            stop_reason: u8(Uint8Array.of(1)),
            ...columns,
          },
          { format: '3' },
        ),
      ),
      { scores: [2.5], reasons: [null], ...table } as unknown as Scores,
    );
  const faultsOf = (inBatch: object, inSource: object) =>
    faultsIn(withColumns(inBatch), sampled(inSource), { rejects: false, mix: undefined });
  const both = { 'token.routes': routes, 'token.price': price };

  it('are those of the trajectories that they come from', () => {
    expect(faultsOf(both, both)).toEqual([]);
  });

  it.each([
    [{ ...both, 'token.routes': { ...routes, data: Int32Array.of(7, 9) } }, 'another column routes of its tokens'],
    [{ ...both, 'token.price': { ...price, data: Float32Array.of(0.25) } }, 'another column price of its tokens'],
    [
      { ...both, 'token.price': { ...price, dtype: 'I32', data: Int32Array.of(0) } },
      'another column price of its tokens',
    ],
    [{ 'token.price': price }, 'no column routes of its tokens'],
    [{ ...both, 'token.more': price }, 'a column more, which its source does not have'],
    [
      { ...both, 'token.routes': { ...routes, shape: [2, 1] } },
      'tensor token.routes: shape [2, 1] for 1 response tokens',
    ],
  ])('are refused when they are others: %#', (inBatch, fault) => {
    expect(faultsOf(inBatch, both)).toEqual([fault]);
  });

  it('are of samples whose table of scores has the same draws', () => {
    expect(sampled(both, { drawOffsets: [0, 1] }).size).toBe(1);
    expect(() => sampled(both, { drawOffsets: [0, 0, 1] })).toThrow('has other draws');
  });

  it('are unknown for a sample whose sampler gave none', () => {
    const unknown = {
      'token.routes': { ...routes, data: Int32Array.of(-1, -1) },
      'token.price': { ...price, data: Float32Array.of(Number.NaN) },
    };
    expect(faultsOf(unknown, {})).toEqual([]);
    expect(faultsOf({ 'token.routes': routes }, {})).toEqual(['a column routes, which its source does not have']);
  });
});
