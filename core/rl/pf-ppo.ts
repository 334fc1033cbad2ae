/**
 * Policy filtration for PPO (verl: `compute_pf_ppo_reweight_data`, keys `algorithm.use_pf_ppo`, `algorithm.pf_ppo.*`;
 * Shen and Zhang 2024, arXiv 2409.06957): after the advantages, the batch is drawn again with replacement, so that
 * samples whose scores are reliable are trained on more often. The weight of a sample with the outcome score s:
 *
 *   pow          |s|^weightPow: a bad −2 counts more than a good +1
 *   max_min      1 for the highest and the lowest score of the batch, else 0
 *   max_random   0.4 for the highest score, else 0.1
 *
 * As in verl, 1e-8 is added, so every sample can be drawn. The draw is a function of a key and a counter: the same
 * ones give the same samples, and a replay needs no state.
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { pow } from '../math/pow.ts';
import { PF_PPO_METHODS, type PfPpoMethod } from './names.ts';
import { philoxUniform, type PhiloxKey } from './philox.ts';
import type { Numbers } from './ragged.ts';

const EPSILON = 1e-8;

/** verl's keys under `algorithm.pf_ppo`. */
export interface PfPpoConfig {
  /** pow */
  readonly reweightMethod?: PfPpoMethod | undefined;
  /** 2; the power of `pow`. */
  readonly weightPow?: number | undefined;
}

/** Weights of the draw, not normalised. @throws InvalidInputError for an unknown method. */
export function pfPpoWeights(scores_S: Numbers, config: PfPpoConfig = {}): Float64Array {
  const weightOf = weighting(scores_S, config);
  return Float64Array.from(scores_S, (score) => Math.max(weightOf(score) + EPSILON, EPSILON));
}

function weighting(
  scores_S: Numbers,
  { reweightMethod = 'pow', weightPow = 2 }: PfPpoConfig,
): (score: number) => number {
  let [lowest, highest] = [Infinity, -Infinity];
  for (let s = 0; s < scores_S.length; s++) {
    lowest = Math.min(lowest, at(scores_S, s));
    highest = Math.max(highest, at(scores_S, s));
  }
  switch (reweightMethod) {
    case 'pow':
      return (score) => pow(Math.abs(score), weightPow);
    case 'max_min':
      return (score) => (score === highest || score === lowest ? 1 : 0);
    case 'max_random':
      return (score) => (score === highest ? 0.4 : 0.1);
    default:
      throw new InvalidInputError(`unknown pf_ppo.reweight_method "${String(reweightMethod)}"`, {
        hint: `one of ${PF_PPO_METHODS.join(', ')}`,
      });
  }
}

/** Names the random numbers of a draw: one key and counter for each purpose and iteration. */
export interface DrawSeed {
  readonly key: PhiloxKey;
  /** The last word of the generator's counter is the number of the draw. */
  readonly counter: readonly [number, number, number];
}

/**
 * `count` indices, each with a probability in proportion to its weight, independent of each other. An index with the
 * weight 0 is never drawn.
 *
 * @throws InvalidInputError unless the weights are 0 or more and finite, with a sum greater than 0.
 */
export function drawWithReplacement(weights: Numbers, count: number, { key, counter }: DrawSeed): Int32Array {
  const upTo = new Float64Array(weights.length);
  let total = 0;
  for (let i = 0; i < upTo.length; i++) {
    const weight = at(weights, i);
    if (!(weight >= 0)) throw new InvalidInputError(`a weight must be 0 or more, got ${weight} for number ${i}`);
    total += weight;
    upTo[i] = total;
  }
  if (count > 0 && !(total > 0 && Number.isFinite(total))) {
    throw new InvalidInputError(`weights must have a finite sum greater than 0, got ${total}`);
  }
  return Int32Array.from({ length: count }, (_, draw) =>
    firstAbove(upTo, philoxUniform([...counter, draw], key) * total),
  );
}

/** The first index whose sum lies above a number less than the last sum. */
function firstAbove(ascending: Float64Array, value: number): number {
  let [low, high] = [0, ascending.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(ascending, middle) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
