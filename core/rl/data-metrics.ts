/** Metrics of a training batch (verl: `compute_data_metrics`), with verl's names. */
import { at } from '../at.ts';
import { square } from '../math/square.ts';
import type { Numbers, RaggedRows } from './ragged.ts';

export interface DataMetricsInput {
  readonly rows: RaggedRows;
  /** The scorer's score, and the reward after the KL term; equal without that term. */
  readonly scores_S: Numbers;
  readonly rewards_S: Numbers;
  readonly promptLengths_S: Numbers;
  /** Tokens of the response, observation tokens included. 0: the sample was aborted. */
  readonly responseLengths_S: Numbers;
  readonly maxPromptLength: number;
  readonly maxResponseLength: number;
  readonly advantages_T: Numbers;
  readonly returns_T: Numbers;
  /** Present with a critic. */
  readonly values_T?: Numbers | undefined;
  readonly numTurns_S?: Numbers | undefined;
  readonly toolCallCounts_S?: Numbers | undefined;
}

export function dataMetrics(input: DataMetricsInput): Record<string, number> {
  const lengths = Array.from(input.responseLengths_S);
  const finished = lengths.flatMap((length, s) => (length !== 0 ? [s] : []));
  const ofFinished = (values: Numbers) => finished.map((s) => at(values, s));
  const valid = (values: Numbers) => validValues(values, input.rows.mask_T);
  return {
    ...spread('critic/score', each(ofFinished(input.scores_S))),
    ...spread('critic/rewards', each(ofFinished(input.rewards_S))),
    ...spread('critic/advantages', valid(input.advantages_T)),
    ...spread('critic/returns', valid(input.returns_T)),
    ...(input.values_T === undefined ? {} : ofCritic(input, input.values_T)),
    ...lengthMetrics('response_length', lengths, input.maxResponseLength),
    ...lengthMetrics('response_length_non_aborted', ofFinished(lengths), input.maxResponseLength),
    'response/aborted_ratio': mean(each(lengths.map((length) => Number(length === 0)))),
    ...lengthMetrics('prompt_length', Array.from(input.promptLengths_S), input.maxPromptLength),
    ...(input.numTurns_S === undefined ? {} : spread('num_turns', each(input.numTurns_S))),
    ...(input.toolCallCounts_S === undefined ? {} : spread('tool_call_counts', each(input.toolCallCounts_S))),
  };
}

/** Explained variance 1 − var(R − V) / (var(R) + 1e-5); NaN with a single token. */
function criticMetrics(values: Walk, returns: Walk, residuals: Walk): Record<string, number> {
  return {
    ...spread('critic/values', values),
    'critic/vf_explained_var': 1 - sampleVariance(residuals) / (sampleVariance(returns) + 1e-5),
  };
}

function lengthMetrics(prefix: string, lengths: readonly number[], longest: number): Record<string, number> {
  return {
    ...spread(prefix, each(lengths)),
    [`${prefix}/clip_ratio`]: mean(each(lengths.map((length) => Number(length === longest)))),
  };
}

/**
 * Calls back with each value, in order. A list of the values of all tokens would be as large as a batch, so they are
 * walked through once for each number.
 */
type Walk = (visit: (value: number) => void) => void;

function each(values: Numbers): Walk {
  return (visit) => {
    for (let i = 0; i < values.length; i++) visit(values[i] as number);
  };
}

/** Values at mask 1. */
function validValues(values: Numbers, mask_T: Numbers): Walk {
  return (visit) => {
    for (let t = 0; t < values.length; t++) if (mask_T[t] === 1) visit(values[t] as number);
  };
}

function ofCritic({ rows: { mask_T }, returns_T }: DataMetricsInput, values_T: Numbers): Record<string, number> {
  const residuals: Walk = (visit) => {
    for (let t = 0; t < returns_T.length; t++) if (mask_T[t] === 1) visit(at(returns_T, t) - at(values_T, t));
  };
  return criticMetrics(validValues(values_T, mask_T), validValues(returns_T, mask_T), residuals);
}

/** Mean, max and min; NaN for no values. */
function spread(prefix: string, values: Walk): Record<string, number> {
  let [sum, count, largest, smallest] = [0, 0, -Infinity, Infinity];
  values((value) => {
    sum += value;
    count++;
    largest = Math.max(largest, value);
    smallest = Math.min(smallest, value);
  });
  return {
    [`${prefix}/mean`]: sum / count,
    [`${prefix}/max`]: count === 0 ? NaN : largest,
    [`${prefix}/min`]: count === 0 ? NaN : smallest,
  };
}

function mean(values: Walk): number {
  const { sum, count } = totals(values);
  return sum / count;
}

/** Unbiased; NaN for fewer than two values. */
function sampleVariance(values: Walk): number {
  const { sum, count } = totals(values);
  if (count < 2) return NaN;
  const center = sum / count;
  let squares = 0;
  values((value) => (squares += square(value - center)));
  return squares / (count - 1);
}

function totals(values: Walk): { readonly sum: number; readonly count: number } {
  let [sum, count] = [0, 0];
  values((value) => {
    sum += value;
    count++;
  });
  return { sum, count };
}
