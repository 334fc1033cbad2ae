/**
 * Small random batches on which a module of the user's own is tried when a run starts. They follow from the number of
 * the batch, and contain the edges of real ones: a response without a valid token, one valid token in all, log-probs
 * that equal the old ones, ratios far from 1, a response alone in its group.
 */
import { philoxUniform } from '../philox.ts';
import { raggedRows } from '../ragged.ts';
import type { AdvantageBatch } from '../advantages/types.ts';
import { rewardsAtLastToken } from '../advantages/outcomes.ts';
import type { OwnLossSources } from './loss.ts';

export const trialBatches = 8;

const key = [0x70657472, 0x656c0001] as const;

/** Numbers in [low, high), in an order that follows from the number of the batch. */
function numbersOf(batch: number): (low: number, high: number) => number {
  let next = 0;
  return (low, high) => low + (high - low) * philoxUniform([next++, batch, 0, 0], key);
}

/**
 * A trial input for a loss: moderate numbers, so that its terms matter and a finite difference is exact to many digits.
 */
export function trialLossInput(batch: number): OwnLossSources & { readonly seed: readonly number[] } {
  const random = numbersOf(batch);
  const rows = trialRows(batch, random);
  const tokens = rows.mask_T.length;
  const column = (low: number, high: number) => Float64Array.from({ length: tokens }, () => random(low, high));
  const logProb_T = column(-4, -0.05);
  const near = (distance: number) => logProb_T.map((value) => value + random(-distance, distance));
  return {
    rows,
    logProb_T,
    oldLogProb_T: batch === 0 ? logProb_T.slice() : near(batch % 2 === 0 ? 0.3 : 1.5),
    advantages_T: column(-2, 2),
    rolloutLogProb_T: near(0.1),
    refLogProb_T: near(1),
    entropy_T: column(0, 3),
    values_T: column(-1, 1),
    ...(batch % 3 === 2 && { rolloutIsWeights_T: column(0.5, 2) }),
    seed: [1, batch, 0],
  };
}

/**
 * A trial batch for an estimator: three prompts, the last one with a single response; in every third batch all scores
 * are equal.
 */
export function trialAdvantageBatch(batch: number): AdvantageBatch {
  const random = numbersOf(batch);
  const rows = trialRows(batch, random);
  const samples = rows.offsets_S1.length - 1;
  const scores_S = Float64Array.from({ length: samples }, () => (batch % 3 === 1 ? 1 : Math.round(random(0, 3))));
  return {
    rows,
    rewards_T: rewardsAtLastToken(scores_S, rows),
    groups_S: Int32Array.from({ length: samples }, (_, s) => (s === samples - 1 ? 2 : s % 2)),
    values_T: Float64Array.from({ length: rows.mask_T.length }, () => random(-1, 1)),
  };
}

/** Five responses of 1 to 8 tokens, a fifth of them outside of the mask. */
function trialRows(batch: number, random: (low: number, high: number) => number) {
  const lengths = Array.from({ length: 5 }, () => Math.floor(random(1, 9)));
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  const mask_T = Uint8Array.from({ length: tokens }, () => (random(0, 1) < 0.2 ? 0 : 1));
  if (batch === 2) mask_T.fill(0, 0, lengths[0]);
  if (batch === 3) mask_T.fill(0);
  if (batch === 3) mask_T[tokens - 1] = 1;
  return raggedRows(lengths, mask_T);
}
