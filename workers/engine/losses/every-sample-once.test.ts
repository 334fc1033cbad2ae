import fc from 'fast-check';
import { expect, it } from 'vitest';
import { everySampleOnce } from './every-sample-once.ts';
import type { SampledLayout } from './every-sample-once.ts';

/** Samples of one prompt token and a response each, in micro-batches of two, visited in two epochs. */
function layoutOf(lengths: readonly number[]): SampledLayout {
  const offsets_S1 = Int32Array.from([0, ...lengths]);
  const scoredOffsets_S1 = Int32Array.from([0, ...lengths.map((length) => length - 1)]);
  for (let b = 0; b < lengths.length; b++) {
    offsets_S1[b + 1]! += offsets_S1[b]!;
    scoredOffsets_S1[b + 1]! += scoredOffsets_S1[b]!;
  }
  const scored = lengths.flatMap((length, b) => Array.from({ length: length - 1 }, (_, t) => offsets_S1[b]! + 1 + t));
  const visited = [...lengths.keys(), ...lengths.keys()];
  const ends = visited.map((_, i) => i + 1).filter((end) => end % 2 === 0 || end === visited.length);
  return {
    tokens_N: new Int32Array(offsets_S1.at(-1)!),
    offsets_S1,
    scored_T: Int32Array.from(scored),
    scoredOffsets_S1,
    microOffsets_M1: Int32Array.from([0, ...ends]),
    microSamples: Int32Array.from(visited),
  };
}

const lengths = fc.array(fc.integer({ min: 2, max: 30 }), { minLength: 1, maxLength: 20 });

it('reads every sample once, in the passes of the batch', () => {
  fc.assert(
    fc.property(lengths, (all) => {
      const passes = [...everySampleOnce(layoutOf(all), 'flat', () => {})];
      expect(passes.flatMap(({ samples }) => [...samples])).toEqual([...all.keys()]);
    }),
  );
});

it('reads every sample once within another token limit, with no pass that had room for the next sample', () => {
  fc.assert(
    fc.property(
      lengths,
      fc.integer({ min: 30, max: 80 }),
      fc.constantFrom('flat' as const, 'prefixTree' as const),
      (all, limit, tree) => {
        const done: number[] = [];
        const passes = [...everySampleOnce(layoutOf(all), tree, (one) => done.push(one), limit)];
        const members = passes.map(({ samples }) => [...samples]);
        expect(members.flat()).toEqual([...all.keys()]);
        expect(done).toEqual(passes.map((_, i) => i + 1));
        for (const { packed } of passes) expect(packed.tokens_N.length).toBeLessThanOrEqual(limit);
        const tokens = (samples: readonly number[]) => samples.reduce((sum, b) => sum + all[b]!, 0);
        for (const [i, pass] of members.slice(0, -1).entries())
          expect(tokens(pass) + all[members[i + 1]![0]!]!).toBeGreaterThan(limit);
      },
    ),
  );
});
