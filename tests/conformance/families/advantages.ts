import { advantageEstimator, ADVANTAGE_ESTIMATORS } from '../../../core/rl/advantages/index.ts';
import { informativeGroups } from '../../../core/rl/filter-groups.ts';
import { maskedMean, maskedSum, maskedVar, maskedWhiten } from '../../../core/rl/masked-stats.ts';
import { pureEvaluator } from '../evaluators.ts';
import { allRows, flatten, inputsOf, maskedRows, numbers, paramsOf, unflatten } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const advantages = pureEvaluator('advantages', {
  ...Object.fromEntries(ADVANTAGE_ESTIMATORS.map((name) => [name, (testCase: GoldenCase) => estimate(name, testCase)])),
  masked_stats: maskedStats,
  filter_groups: filterGroups,
});

function estimate(name: string, testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const rewards = inputs.get('token_level_rewards') as unknown[];
  const scores_S = rewards.map((row) => numbers(row).reduce((sum, reward) => sum + reward, 0));
  const groups_S = groupKeys(inputs.get('index') as readonly unknown[], name);
  const config = {
    normAdvByStdInGrpo: params.has('norm_adv_by_std_in_grpo') ? params.flag('norm_adv_by_std_in_grpo') : undefined,
  };
  const { advantages_T, returns_T } = advantageEstimator(name).compute({ rows, scores_S, groups_S }, config);
  return { advantages: unflatten(advantages_T, rows), returns: unflatten(returns_T, rows) };
}

/** The vectorised estimators turn ids into tensor indices first: ids that parse as integers merge by value. */
function groupKeys(index: readonly unknown[], name: string): unknown[] {
  if (!name.endsWith('_vectorized')) return [...index];
  const parsed = index.map((id) =>
    typeof id === 'number' ? Math.trunc(id) : /^\s*[+-]?\d+\s*$/.test(String(id)) ? Number(id) : undefined,
  );
  return parsed.includes(undefined) ? [...index] : parsed;
}

function maskedStats(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const rows = allRows(inputs.get('mask'));
  const values = flatten(inputs.get('values'));
  const mask = flatten(inputs.get('mask'));
  const perRow = (statistic: (values: Float64Array, mask: Float64Array) => number) =>
    Array.from({ length: rows.offsets_S1.length - 1 }, (_, s) => {
      const [from, to] = [rows.offsets_S1[s], rows.offsets_S1[s + 1]];
      return statistic(values.subarray(from, to), mask.subarray(from, to));
    });
  const parts: Readonly<Record<string, () => unknown>> = {
    sum: () => maskedSum(values, mask),
    sum_axis: () => perRow(maskedSum),
    mean: () => maskedMean(values, mask),
    mean_axis: () => perRow(maskedMean),
    var: () => maskedVar(values, mask),
    var_biased: () => maskedVar(values, mask, false),
    whiten: () => unflatten(maskedWhiten(values, mask), rows),
    whiten_noshift: () => unflatten(maskedWhiten(values, mask, false), rows),
  };
  const wanted = paramsOf(testCase).get('parts') as string[];
  return Object.fromEntries(wanted.map((part) => [part, parts[part]?.()]));
}

function filterGroups(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const { keptRows, keptGroups, dropped } = informativeGroups(
    numbers(inputs.get('metric')),
    inputs.get('uid') as string[],
  );
  return {
    kept_rows: keptRows,
    kept_prompts: keptGroups.toSorted(),
    num_prompts_kept: keptGroups.length,
    evicted_with_value: Object.fromEntries(dropped),
  };
}
