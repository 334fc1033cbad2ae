/** Random batches for property tests of core/rl. Only tests import it. */
import fc from 'fast-check';
import { at } from '../at.ts';
import type { ActorLossInput } from './actor-total.ts';
import type { PolicyLossConfig, PolicyLossInput } from './policy-loss/index.ts';
import { raggedRows, rowCount, type RaggedRows } from './ragged.ts';

/** Settings with which every policy loss can be computed. */
export const lossSettings = {
  clipRatio: 0.2,
  clipRatioC: 3,
  clipCovRatio: 0.3,
  clipCovLb: 0.1,
  klCovRatio: 0.3,
  droBeta: 0.4,
  seed: [7],
} satisfies Partial<PolicyLossConfig>;

export const arbitraryRows: fc.Arbitrary<RaggedRows> = rowsOf(1, 5);

function rowsOf(least: number, most: number): fc.Arbitrary<RaggedRows> {
  return fc
    .array(fc.array(fc.constantFrom(1, 1, 1, 0), { minLength: 1, maxLength: 5 }), { minLength: least, maxLength: most })
    .map((masks) =>
      raggedRows(
        masks.map((mask) => mask.length),
        Float64Array.from(masks.flat()),
      ),
    );
}

export function arbitraryValues(length: number, min: number, max: number): fc.Arbitrary<Float64Array> {
  const value = fc.double({ min, max, noNaN: true });
  return fc.array(value, { minLength: length, maxLength: length }).map((values) => Float64Array.from(values));
}

/** A micro-batch of moderate numbers, with entropies and a reference. */
export const arbitraryActorInput: fc.Arbitrary<ActorLossInput> = arbitraryRows.chain((rows) => {
  const tokens = rows.mask_T.length;
  return fc.record({
    rows: fc.constant(rows),
    logProb_T: arbitraryValues(tokens, -3, -0.01),
    oldLogProb_T: arbitraryValues(tokens, -3, -0.01),
    refLogProb_T: arbitraryValues(tokens, -3, -0.01),
    advantages_T: arbitraryValues(tokens, -2, 2),
    entropy_T: arbitraryValues(tokens, 0, 3),
    rolloutIsWeights_T: fc.option(arbitraryValues(tokens, 0.1, 2), { nil: undefined }),
    scores_S: arbitraryValues(rowCount(rows), -1, 1),
  });
});

/** A micro-batch with all that a policy loss may need: two prompts with two responses each. */
export const arbitraryLossInput: fc.Arbitrary<PolicyLossInput> = rowsOf(4, 4).chain((rows) => {
  const tokens = rows.mask_T.length;
  return fc.record({
    rows: fc.constant(rows),
    logProb_T: arbitraryValues(tokens, -3, -0.01),
    oldLogProb_T: arbitraryValues(tokens, -3, -0.01),
    rolloutLogProb_T: arbitraryValues(tokens, -3, -0.01),
    refLogProb_T: arbitraryValues(tokens, -3, -0.01),
    advantages_T: arbitraryValues(tokens, -2, 2),
    rolloutIsWeights_T: fc.option(arbitraryValues(tokens, 0.1, 2), { nil: undefined }),
    groups_S: fc.constant(['a', 'b', 'b', 'a']),
    scores_S: arbitraryValues(4, -1, 1),
    logZ_S: arbitraryValues(4, -2, 2),
  });
});

/** Rows `members` of a batch, as a batch of its own. */
export function selectRows(input: ActorLossInput, members: readonly number[]): ActorLossInput {
  const spans = members.map((s) => [at(input.rows.offsets_S1, s), at(input.rows.offsets_S1, s + 1)] as const);
  const pick = (values: ArrayLike<number>) =>
    Float64Array.from(spans.flatMap(([from, to]) => Array.from(values).slice(from, to)));
  const optional = (values: ArrayLike<number> | undefined) => (values === undefined ? undefined : pick(values));
  return {
    rows: raggedRows(
      spans.map(([from, to]) => to - from),
      pick(input.rows.mask_T),
    ),
    logProb_T: pick(input.logProb_T),
    oldLogProb_T: pick(input.oldLogProb_T),
    advantages_T: pick(input.advantages_T),
    refLogProb_T: optional(input.refLogProb_T),
    entropy_T: optional(input.entropy_T),
    rolloutIsWeights_T: optional(input.rolloutIsWeights_T),
    scores_S: input.scores_S && members.map((s) => at(input.scores_S ?? [], s)),
  };
}
