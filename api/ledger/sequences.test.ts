import { describe, expect, it } from 'vitest';
import { encodeSafetensors } from '../../models/safetensors.ts';
import { f32, i32, u8 } from '../../models/trajectories.ts';
import type { Objects } from './objects.ts';
import type { Batch } from './records.ts';
import { compareSequences, placedSamples, sourceName } from './sequences.ts';
import { readTensors } from './tensors.ts';

/** One sample with the reward 2.5, the score 1 of the scorer and 4 of a reward model. */
const tensors = readTensors(
  encodeSafetensors(
    {
      tokens: i32(Int32Array.of(5, 6)),
      offsets: i32(Int32Array.of(0, 2)),
      scored: i32(Int32Array.of(1)),
      scored_offsets: i32(Int32Array.of(0, 1)),
      mask: u8(Uint8Array.of(1)),
      rewards: f32(Float32Array.of(2.5)),
      model_scores: f32(Float32Array.of(4)),
    },
    {},
  ),
);
const batch = { draws: [{ draw: 0, row: 3, fate: 'trained', samples: [0] }] } as unknown as Batch;
const sources = new Map([
  [
    sourceName(0, 0),
    { row: 3, prompt: Int32Array.of(5), response: Int32Array.of(6), logProbs: new Int32Array(1), score: 1 },
  ],
]);

function faultsWith(mix?: { weight: number; scorerWeight: number }): string[] {
  const found: string[] = [];
  const faults = {
    add: (_key: string, _expected: string, what: string) => found.push(what),
    equal: (_key: string, what: string, expected: unknown, there: unknown) => {
      if (expected !== there) found.push(what);
    },
  };
  const objects = { faults } as unknown as Objects;
  const placed = placedSamples(objects, batch, 'batch', sources);
  compareSequences(objects, 'tensors', tensors, placed, { rejects: false, mix });
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
