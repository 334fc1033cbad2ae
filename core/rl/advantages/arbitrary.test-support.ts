/** Random training batches with every input that an estimator may need. Only tests import it. */
import fc from 'fast-check';
import { raggedRows } from '../ragged.ts';
import type { AdvantageBatch } from './types.ts';

export interface ArbitraryToken {
  readonly mask: number;
  readonly reward: number;
  readonly value: number;
  readonly logProb: number;
  readonly sumPiSquared: number;
  readonly importance: number;
  readonly processReward: number;
}

export interface ArbitrarySample {
  readonly group: number;
  readonly tokens: readonly ArbitraryToken[];
  readonly greedyBaseline: number;
  readonly promptValue: number;
  readonly components: { readonly form: number; readonly answer: number };
  readonly episode: number;
  readonly step: number;
  readonly anchor: number;
}

const number = (min: number, max: number) => fc.double({ min, max, noNaN: true });

const token: fc.Arbitrary<ArbitraryToken> = fc
  .record({
    mask: fc.constantFrom(1, 1, 1, 0),
    reward: fc.constantFrom(0, 0, 1, -0.5, 0.23),
    value: number(-2, 2),
    probability: number(0.05, 0.95),
    concentration: number(0, 1),
    importance: number(0.1, 2),
    processReward: number(-1, 1),
  })
  .map(({ probability, concentration, ...others }) => ({
    ...others,
    logProb: Math.log(probability),
    // The other tokens' probabilities add up to 1 − π, so their squares to at most (1 − π)².
    sumPiSquared: probability ** 2 + concentration * (1 - probability) ** 2,
  }));

const sample = (group: number): fc.Arbitrary<Omit<ArbitrarySample, 'step'>> =>
  fc.record({
    group: fc.constant(group),
    tokens: fc.array(token, { minLength: 1, maxLength: 6 }),
    greedyBaseline: number(-1, 1),
    promptValue: number(0, 1),
    components: fc.record({ form: fc.constantFrom(0, 1), answer: number(-1, 1) }),
    episode: fc.nat(2),
    anchor: fc.nat(1),
  });

/**
 * Groups of two to four samples in any order, with two valid tokens or more in all. No two have the same step, because
 * an episode cannot have it twice.
 */
export const arbitrarySamples: fc.Arbitrary<ArbitrarySample[]> = fc
  .array(fc.integer({ min: 2, max: 4 }), { minLength: 1, maxLength: 3 })
  .chain((sizes) => fc.tuple(...sizes.flatMap((size, group) => Array.from({ length: size }, () => sample(group)))))
  .map((samples) => samples.map((one, step) => ({ ...one, step })))
  .chain((samples) => fc.shuffledSubarray(samples, { minLength: samples.length, maxLength: samples.length }))
  .filter((samples) => samples.flatMap(({ tokens }) => tokens).filter(({ mask }) => mask === 1).length >= 2);

export function batchOf(samples: readonly ArbitrarySample[]): Required<Omit<AdvantageBatch, 'sessions'>> {
  const tokens = samples.flatMap((one) => one.tokens);
  const ofTokens = (key: keyof ArbitraryToken) => Float64Array.from(tokens, (one) => one[key]);
  return {
    rows: raggedRows(
      samples.map((one) => one.tokens.length),
      ofTokens('mask'),
    ),
    rewards_T: ofTokens('reward'),
    groups_S: samples.map((one) => one.group),
    values_T: ofTokens('value'),
    oldLogProb_T: ofTokens('logProb'),
    sumPiSquared_T: ofTokens('sumPiSquared'),
    rolloutIsWeights_T: ofTokens('importance'),
    greedyBaselines_S: samples.map((one) => one.greedyBaseline),
    components: {
      form: samples.map((one) => one.components.form),
      answer: samples.map((one) => one.components.answer),
    },
    processRewards_T: ofTokens('processReward'),
    promptValues_S: samples.map((one) => one.promptValue),
    episodes: {
      episodes_S: samples.map((one) => one.episode),
      steps_S: samples.map((one) => one.step),
      anchors_S: samples.map((one) => one.anchor),
    },
  };
}

/** Row by row, with null at mask 0. */
export function validRows(values_T: Float64Array, { rows }: AdvantageBatch): (number | null)[][] {
  return Array.from({ length: rows.offsets_S1.length - 1 }, (_, s) => {
    const [from, to] = [rows.offsets_S1[s] ?? 0, rows.offsets_S1[s + 1] ?? 0];
    return Array.from(values_T.subarray(from, to), (value, i) => (rows.mask_T[from + i] === 0 ? null : value));
  });
}
