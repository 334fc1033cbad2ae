import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { raggedRows } from '../ragged.ts';
import { advantageEstimator } from './index.ts';

const scored = fc.array(fc.record({ score: fc.double({ min: -5, max: 5, noNaN: true }), group: fc.nat(3) }), {
  minLength: 1,
  maxLength: 12,
});

function grpoOf(
  samples: readonly { readonly score: number; readonly group: number }[],
  normAdvByStdInGrpo = true,
): Float64Array {
  const rows = raggedRows(samples.map(() => 1));
  const batch = { rows, rewards_T: samples.map((s) => s.score), groups_S: samples.map((s) => s.group) };
  return advantageEstimator('grpo').compute(batch, { normAdvByStdInGrpo }).advantages_T;
}

describe('GRPO', () => {
  test('advantages of a group of several add up to 0', () => {
    fc.assert(
      fc.property(scored, (samples) => {
        const advantages = grpoOf(samples);
        for (const group of new Set(samples.map((s) => s.group))) {
          const members = samples.flatMap((s, i) => (s.group === group ? [i] : []));
          if (members.length > 1) expect(members.reduce((sum, i) => sum + advantages[i]!, 0)).toBeCloseTo(0, 6);
        }
      }),
    );
  });

  test('the order of the samples does not matter', () => {
    fc.assert(
      fc.property(scored, (samples) => {
        const reversed = grpoOf(samples.toReversed(), false).toReversed();
        grpoOf(samples, false).forEach((advantage, i) => expect(reversed[i]).toBeCloseTo(advantage, 12));
      }),
    );
  });

  test('equal scores give exactly 0, for any size', () => {
    expect(grpoOf([0.23, 0.23, 0.23, 0.23, 0.23].map((score) => ({ score, group: 0 })))).toEqual(new Float64Array(5));
  });

  test('a group of one keeps its score; Dr.GRPO keeps the scale', () => {
    expect(grpoOf([{ score: 3, group: 0 }])[0]).toBeCloseTo(3, 5);
    expect([
      ...grpoOf(
        [
          { score: 3, group: 0 },
          { score: 1, group: 0 },
        ],
        false,
      ),
    ]).toEqual([1, -1]);
  });

  test('an unknown estimator is refused with a list of the known ones', () => {
    expect(() => advantageEstimator('gropo')).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('grpo') }),
    );
  });
});
