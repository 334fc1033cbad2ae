import fc from 'fast-check';
import { expect, test } from 'vitest';
import { actorTotal, type ActorLossConfig, type ActorLossInput } from './actor-total.ts';
import { arbitraryLossInput, arbitraryValues, lossSettings } from './arbitrary.test-support.ts';
import { batchTotals } from './aggregate.ts';
import { POLICY_LOSS_NAMES } from './names.ts';
import { parseRolloutCorrection } from './rollout-correction/options.ts';
import { scratch, scratchFloat64, withScratch } from './scratch.ts';

test('arrays of one computation are those of the next, and never two at a time', () => {
  const taken = () => withScratch(() => [scratch(100), scratch(100)]);
  const first = taken();
  expect(new Set(first.map(({ buffer }) => buffer)).size).toBe(2);
  expect(new Set(taken().map(({ buffer }) => buffer))).toEqual(new Set(first.map(({ buffer }) => buffer)));
  withScratch(() => {
    const outer = scratch(100);
    const inner = withScratch(() => scratch(60));
    expect(inner).toHaveLength(60);
    expect(scratch(100).buffer).not.toBe(outer.buffer);
    expect(inner.buffer).not.toBe(outer.buffer);
  });
});

test('a computation that throws gives its arrays back', () => {
  expect(() =>
    withScratch(() => {
      scratch(10);
      throw new Error('no');
    }),
  ).toThrow('no');
  expect(scratch(3)).toEqual(new Float64Array(3)); // outside of a computation: a new one
});

test('an array of float64 is not copied', () => {
  const values = Float64Array.of(1, 2);
  expect(scratchFloat64(values)).toBe(values);
  expect(withScratch(() => Array.from(scratchFloat64([1, 2])))).toEqual([1, 2]);
});

/** What is left in scratch arrays must not matter. */
function spoil(): void {
  withScratch(() => {
    for (let i = 0; i < 20; i++) scratch(64).fill(NaN);
  });
}

/** The input as the engine gives it, so that the losses make copies. */
function inFloat32(input: ActorLossInput): ActorLossInput {
  const narrow = (value: unknown) => (value instanceof Float64Array ? Float32Array.from(value) : value);
  return { ...input, ...Object.fromEntries(Object.entries(input).map(([name, value]) => [name, narrow(value)])) };
}

const arbitraryInput = arbitraryLossInput.chain((input) =>
  arbitraryValues(input.rows.mask_T.length, 0, 3).map((entropy_T) => inFloat32({ ...input, entropy_T })),
);

test.each(
  POLICY_LOSS_NAMES.flatMap((lossMode) => (['ppo_clip', 'reinforce'] as const).map((type) => [lossMode, type])),
)('results of %s (%s) do not depend on earlier computations, nor change with later ones', (lossMode, loss_type) => {
  const config = (input: ActorLossInput): ActorLossConfig => ({
    lossMode,
    lossAggMode: 'seq-mean-token-mean',
    totals: batchTotals(input.rows),
    ...lossSettings,
    rolloutCorrection: parseRolloutCorrection({
      rollout_is: 'token',
      rollout_is_batch_normalize: true,
      rollout_rs: 'token_k1,seq_mean_k3',
      rollout_rs_threshold: '2,1',
      loss_type,
    }),
    entropyCoeff: 0.1,
    klLossCoef: 0.5,
    klLossType: 'k3+',
  });
  const computed = (input: ActorLossInput) => actorTotal(input, config(input));
  const hasTokens = ({ rows }: ActorLossInput) => Array.from(rows.mask_T).some((mask) => mask !== 0);
  fc.assert(
    fc.property(arbitraryInput.filter(hasTokens), arbitraryInput.filter(hasTokens), (one, other) => {
      spoil();
      const result = computed(one);
      const kept = structuredClone(result);
      computed(other);
      spoil();
      expect(result).toEqual(kept);
      expect(computed(one)).toEqual(kept);
    }),
    { numRuns: 30 },
  );
});
