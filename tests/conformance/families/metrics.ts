import { mergeStepMetrics } from '../../../core/rl/merge-step-metrics.ts';
import { dataMetrics } from '../../../core/rl/data-metrics.ts';
import { aggregateRanks, aggregateValues, reduceMetrics, type Aggregation } from '../reduce-metrics.ts';
import { rolloutProbsDiff } from '../../../core/rl/rollout-probs-diff.ts';
import { promptStatistics, validationMetrics, validationStatistics } from '../../../core/rl/validation-metrics.ts';
import type { ValidationStatistics } from '../../../core/rl/validation-metrics.ts';
import { rowCount } from '../../../core/rl/ragged.ts';
import { gradientPower, signalAndNoise } from '../../../core/rl/variance-proxy.ts';
import { throughputMetrics, timingPerToken } from '../../../core/timing-metrics.ts';
import { pureEvaluator } from '../evaluators.ts';
import { moeLoadBalance, type ExpertUse } from '../moe-load-balance.ts';
import { flatten, inputsOf, maskedRows, numbers, paramsOf } from '../padded.ts';
import { specDecodeMetrics } from '../spec-decode.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const metrics = pureEvaluator('metrics', {
  data_metrics: data,
  rollout_probs_diff: probsDiff,
  reduce_metrics: reduce,
  metrics_aggregator: aggregate,
  timing_throughput: timing,
  validation_metrics: validation,
  variance_proxy: variance,
  moe_load_balance: loadBalance,
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

function aggregate(testCase: GoldenCase): Outcome {
  const steps = inputsOf(testCase).get('steps') as { sample_count: number; metrics: Record<string, unknown> }[];
  return mergeStepMetrics(
    steps.map(({ sample_count: samples, metrics }) => ({ samples, metrics: numbersOf(metrics) })),
  );
}

/** The reference ignores texts; a run has none. */
function numbersOf(metrics: Record<string, unknown>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).filter(([, value]) => typeof value === 'number')) as Record<
    string,
    number
  >;
}

function timing(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const optional = (name: string) => (inputs.has(name) ? numbers(inputs.get(name)) : undefined);
  if (params.get('function') === 'compute_spec_decode_metrics') {
    return specDecodeMetrics({
      drafts: optional('drafts'),
      accepts: optional('accepts'),
      verifies: optional('verifies'),
      keep: optional('non_padding_mask'),
    });
  }
  const attention = (inputs.get('attention_mask') as unknown[]).map(numbers);
  const all = sum(attention.flat());
  const response = sum(attention.flatMap((row) => row.slice(-params.number('response_width'))));
  const seconds = inputs.get('timing_raw') as Record<string, number>;
  const step = seconds['step'];
  return {
    timing: {
      ...Object.fromEntries(Object.entries(seconds).map(([name, value]) => [`timing_s/${name}`, value])),
      ...timingPerToken(seconds, { response, all }),
    },
    throughput:
      step === undefined ? {} : throughputMetrics({ tokens: all, seconds: step, devices: params.number('n_gpus') }),
  };
}

function validation(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const { pred, ...lists } = inputs.get('infos_dict') as Record<string, unknown[]>;
  const [sources, prompts] = [inputs.get('data_sources') as string[], inputs.get('sample_uids') as string[]];
  const rowsOf = new Map<string, number[]>();
  for (const [i, source] of sources.entries()) {
    const key = JSON.stringify([source, prompts[i]]);
    rowsOf.set(key, [...(rowsOf.get(key) ?? []), i]);
  }
  const known = new Map();
  const statistics = validationStatistics(
    [...rowsOf.values()].map((rows) => {
      const ofRows = (list: unknown[]) => rows.map((row) => list[row]);
      const values = Object.entries(lists).map(([name, list]) => [name, numbers(ofRows(list))]);
      const votes = pred && ofRows(pred).map(String);
      return promptStatistics(
        { source: sources[rows[0] ?? 0] ?? '', values: Object.fromEntries(values), votes },
        known,
      );
    }),
  );
  const isDrawn = (metric: string) => metric.includes('/');
  return {
    deterministic: nested(statistics, (metric) => !isDrawn(metric)),
    expected_exact: nested(statistics, isDrawn),
    metric_names: Object.keys(validationMetrics(statistics)).sort(),
  };
}

/** The chosen metrics by number and source, without empty entries. */
function nested(statistics: ValidationStatistics, isChosen: (metric: string) => boolean): Record<string, object> {
  const ofSource = (byName: Iterable<readonly [string, object]>) =>
    withEntries(
      [...byName].map(([name, metrics]) => [
        name,
        withEntries(Object.entries(metrics).filter(([one]) => isChosen(one))),
      ]),
    );
  return withEntries([...statistics].map(([source, byName]) => [source, ofSource(byName)])) as Record<string, object>;
}

function withEntries(entries: readonly (readonly [string, unknown])[]): object {
  return Object.fromEntries(
    entries.filter(([, value]) => typeof value !== 'object' || Object.keys(value ?? {}).length > 0),
  );
}

function variance(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const rows = maskedRows(inputs.get('response_mask'));
  const power = gradientPower({
    rows,
    oldLogProb_T: flatten(inputs.get('old_log_probs')),
    sumPiSquared_T: flatten(inputs.get('sum_pi_squared')),
    advantages_T: flatten(inputs.get('advantages')),
    rolloutIsWeights_T: inputs.has('rollout_is_weights') ? flatten(inputs.get('rollout_is_weights')) : undefined,
  });
  const gradNorm = paramsOf(testCase).optionalNumber('gradient_norm');
  return { ...power, ...signalAndNoise(power['variance_proxy/proxy2_total_power'], rowCount(rows), gradNorm) };
}

function loadBalance(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  return moeLoadBalance({
    experts: inputs.get('routed_experts') as ExpertUse['experts'],
    mask: (inputs.get('response_mask') as unknown[]).map(numbers),
    count: paramsOf(testCase).number('num_experts'),
  });
}

function rowSums(matrix: unknown): number[] {
  return (matrix as unknown[]).map((row) => sum(numbers(row)));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
