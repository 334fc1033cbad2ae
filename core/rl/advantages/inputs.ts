/** The inputs of an estimator that not every batch has: found and checked, or refused by name. */
import { InvalidInputError } from '../../errors.ts';
import { float64 } from '../float64.ts';
import { requireTokens, rowCount, tokenCount } from '../ragged.ts';
import type { AdvantageBatch } from './types.ts';

interface Source {
  readonly field: 'values_T' | 'oldLogProb_T' | 'sumPiSquared_T' | 'processRewards_T';
  readonly what: string;
  readonly hint: string;
}

const TOKEN_INPUTS = {
  values: { field: 'values_T', what: 'values', hint: 'train a critic: critic.enable: true' },
  oldLogProbs: {
    field: 'oldLogProb_T',
    what: 'old log-probs',
    hint: 'compute the log-probs of the batch with the policy before the update',
  },
  sumPiSquared: {
    field: 'sumPiSquared_T',
    what: 'sums of squared probabilities',
    hint: 'compute the sum of π² over the vocabulary with the old log-probs (verl: actor.calculate_sum_pi_squared)',
  },
  processRewards: {
    field: 'processRewards_T',
    what: 'process rewards',
    hint: 'score each token with a reward model, or set reward_dpo_coef to 0',
  },
} as const satisfies Readonly<Record<string, Source>>;

const SAMPLE_INPUTS = {
  greedyBaselines: {
    field: 'greedyBaselines_S',
    what: 'greedy baselines',
    hint: 'sample one greedy response to each prompt and score it',
  },
  promptValues: {
    field: 'promptValues_S',
    what: 'prompt values',
    hint: 'keep a tracker of the scores of each prompt',
  },
} as const;

/** @throws InvalidInputError when the batch lacks it, or has another number of tokens. */
export function tokenInput(estimator: string, need: keyof typeof TOKEN_INPUTS, batch: AdvantageBatch): Float64Array {
  const { field, what, hint } = TOKEN_INPUTS[need];
  const values_T = batch[field] ?? missing(estimator, what, field, hint);
  requireTokens(what, values_T, tokenCount(batch.rows));
  return float64(values_T);
}

/** @throws InvalidInputError when the batch lacks it, or has another number of samples. */
export function sampleInput(estimator: string, need: keyof typeof SAMPLE_INPUTS, batch: AdvantageBatch): Float64Array {
  const { field, what, hint } = SAMPLE_INPUTS[need];
  const values_S = batch[field] ?? missing(estimator, what, field, hint);
  requireSamples(what, values_S, batch);
  return float64(values_S);
}

/** @throws InvalidInputError that names the input. */
export function missing(estimator: string, what: string, field: string, hint: string): never {
  throw new InvalidInputError(`${estimator} needs ${what}, and the batch has none (${field})`, { hint });
}

/** Refuses a list of another length than the number of samples. */
export function requireSamples(what: string, values: { readonly length: number }, batch: AdvantageBatch): void {
  const samples = rowCount(batch.rows);
  if (values.length !== samples) {
    throw new InvalidInputError(`${what} has ${values.length} entries for ${samples} samples`);
  }
}

/** Refuses a group of one, for estimators that compare the samples of a group and have no meaning without. */
export function requireTwo(estimator: string, members: readonly number[], group: unknown): void {
  if (members.length >= 2) return;
  throw new InvalidInputError(
    `${estimator} compares the responses to a prompt, and the group ${String(group)} has only one`,
    { hint: 'set rollout.n to 2 or more, and leave groups of one out of the batch' },
  );
}
