import { dataMetrics } from '../../../core/rl/data-metrics.ts';
import { aggregateRanks, aggregateValues, reduceMetrics, type Aggregation } from '../../../core/rl/reduce-metrics.ts';
import { rolloutProbsDiff } from '../../../core/rl/rollout-probs-diff.ts';
import { pureEvaluator } from '../evaluators.ts';
import { flatten, inputsOf, maskedRows, numbers, paramsOf } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const metrics = pureEvaluator('metrics', {
  data_metrics: data,
  rollout_probs_diff: probsDiff,
  reduce_metrics: reduce,
});

function data(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const promptWidth = params.number('prompt_width');
  const attention = (inputs.get('attention_mask') as unknown[]).map(numbers);
  const optional = (name: string) => (inputs.has(name) ? numbers(inputs.get(name)) : undefined);
  return dataMetrics({
    rows: maskedRows(inputs.get('response_mask')),
    scores_S: rowSums(inputs.get('token_level_scores')),
    rewards_S: rowSums(inputs.get('token_level_rewards')),
    promptLengths_S: attention.map((row) => sum(row.slice(0, promptWidth))),
    responseLengths_S: attention.map((row) => sum(row.slice(promptWidth))),
    maxPromptLength: promptWidth,
    maxResponseLength: params.number('response_width'),
    advantages_T: flatten(inputs.get('advantages')),
    returns_T: flatten(inputs.get('returns')),
    values_T: params.flag('use_critic') ? flatten(inputs.get('values')) : undefined,
    numTurns_S: optional('__num_turns__'),
    toolCallCounts_S: optional('tool_call_counts'),
  });
}

function probsDiff(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  return rolloutProbsDiff(
    flatten(inputs.get('old_log_probs')),
    flatten(inputs.get('rollout_log_probs')),
    flatten(inputs.get('response_mask')),
  );
}

function reduce(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  if (params.string('function') === 'reduce_metrics') {
    return reduceMetrics(inputs.get('metrics') as Record<string, number | number[]>);
  }
  const aggregation = params.string('aggregation') as Aggregation;
  const values = (inputs.get('values_per_rank') as unknown[]).map(numbers);
  return {
    aggregate_first_rank: aggregateValues(values[0] ?? [], aggregation),
    aggregate_dp: aggregateRanks(values, aggregation),
  };
}

function rowSums(matrix: unknown): number[] {
  return (matrix as unknown[]).map((row) => sum(numbers(row)));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
