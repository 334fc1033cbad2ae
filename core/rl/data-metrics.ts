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
  const valid = (values: Numbers) => Array.from(values).filter((_, t) => input.rows.mask_T[t] === 1);
  return {
    ...spread('critic/score', ofFinished(input.scores_S)),
    ...spread('critic/rewards', ofFinished(input.rewards_S)),
    ...spread('critic/advantages', valid(input.advantages_T)),
    ...spread('critic/returns', valid(input.returns_T)),
    ...(input.values_T === undefined ? {} : criticMetrics(valid(input.values_T), valid(input.returns_T))),
    ...lengthMetrics('response_length', lengths, input.maxResponseLength),
    ...lengthMetrics('response_length_non_aborted', ofFinished(lengths), input.maxResponseLength),
    'response/aborted_ratio': mean(lengths.map((length) => Number(length === 0))),
    ...lengthMetrics('prompt_length', Array.from(input.promptLengths_S), input.maxPromptLength),
    ...(input.numTurns_S === undefined ? {} : spread('num_turns', Array.from(input.numTurns_S))),
    ...(input.toolCallCounts_S === undefined ? {} : spread('tool_call_counts', Array.from(input.toolCallCounts_S))),
  };
}

/** Explained variance 1 − var(R − V) / (var(R) + 1e-5); NaN with a single token. */
function criticMetrics(values: readonly number[], returns: readonly number[]): Record<string, number> {
  const residuals = returns.map((value, i) => value - at(values, i));
  return {
    ...spread('critic/values', values),
    'critic/vf_explained_var': 1 - sampleVariance(residuals) / (sampleVariance(returns) + 1e-5),
  };
}

function lengthMetrics(prefix: string, lengths: readonly number[], longest: number): Record<string, number> {
  return {
    ...spread(prefix, lengths),
    [`${prefix}/clip_ratio`]: mean(lengths.map((length) => Number(length === longest))),
  };
}

/** Mean, max and min; NaN for no values. */
function spread(prefix: string, values: readonly number[]): Record<string, number> {
  return {
    [`${prefix}/mean`]: mean(values),
    [`${prefix}/max`]: extreme(values, Math.max),
    [`${prefix}/min`]: extreme(values, Math.min),
  };
}

function extreme(values: readonly number[], pick: (a: number, b: number) => number): number {
  return values.length === 0 ? NaN : values.reduce((a, b) => pick(a, b));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Unbiased; NaN for fewer than two values. */
function sampleVariance(values: readonly number[]): number {
  if (values.length < 2) return NaN;
  const center = mean(values);
  return values.reduce((sum, value) => sum + square(value - center), 0) / (values.length - 1);
}
