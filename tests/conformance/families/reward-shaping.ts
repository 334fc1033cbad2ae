import { at } from '../../../core/at.ts';
import { rowsByGroup } from '../../../core/rl/advantages/groups.ts';
import { reasonToFilter } from '../../../core/rl/filter-groups.ts';
import { nextKlCoef, type KlControl } from '../../../core/rl/kl-controllers.ts';
import { klInReward } from '../../../core/rl/kl-in-reward.ts';
import { maskedMean, maskedSum, maskedVar, maskedWhiten } from '../../../core/rl/masked-stats.ts';
import type { KlControllerName, PfPpoMethod } from '../../../core/rl/names.ts';
import { drawWithReplacement, pfPpoWeights } from '../../../core/rl/pf-ppo.ts';
import { pureEvaluator } from '../evaluators.ts';
import { allRows, fields, flatten, inputsOf, maskedRows, numbers, paramsOf, unflatten } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

/** What happens to rewards and groups before and after the estimator. */
export const rewardShaping = pureEvaluator('advantages', {
  masked_stats: maskedStats,
  kl_in_reward: klSteps,
  kl_controllers: klControllers,
  pf_ppo: pfPpo,
  filter_groups: filterGroups,
});

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
    var: () => maskedVar(values, mask, maskedMean(values, mask)),
    var_biased: () => maskedVar(values, mask, maskedMean(values, mask), false),
    whiten: () => unflatten(maskedWhiten(values, mask), rows),
    whiten_noshift: () => unflatten(maskedWhiten(values, mask, false), rows),
  };
  const wanted = paramsOf(testCase).get('parts') as string[];
  return Object.fromEntries(wanted.map((part) => [part, parts[part]?.()]));
}

/** One batch after the other, with the coefficient that the controller gave after the one before. */
function klSteps(testCase: GoldenCase): Outcome {
  const control = controlOf(testCase);
  let coefficient = control.klCoef;
  const steps = (inputsOf(testCase).get('steps') as Record<string, unknown>[]).map((step) => {
    const inputs = fields(step);
    const rows = maskedRows(inputs.get('response_mask'));
    const { rewards_T, kl, metrics } = klInReward(
      {
        rows,
        scores_T: flatten(inputs.get('token_level_scores')),
        oldLogProb_T: flatten(inputs.get('old_log_probs')),
        refLogProb_T: flatten(inputs.get('ref_log_prob')),
      },
      paramsOf(testCase).string('kl_penalty'),
      coefficient,
    );
    coefficient = nextKlCoef(control, coefficient, kl, rows.offsets_S1.length - 1);
    return { token_level_rewards: unflatten(rewards_T, rows), metrics, kl_coef_after: coefficient };
  });
  return { steps };
}

function klControllers(testCase: GoldenCase): Outcome {
  const control = controlOf(testCase);
  const values = [control.klCoef];
  for (const update of inputsOf(testCase).get('updates') as Record<string, unknown>[]) {
    const given = fields(update);
    values.push(nextKlCoef(control, values.at(-1)!, given.number('current_kl'), given.number('n_steps')));
  }
  return { values };
}

function controlOf(testCase: GoldenCase): KlControl {
  const given = fields(paramsOf(testCase).get('kl_ctrl') as Record<string, unknown>);
  return {
    type: given.string('type') as KlControllerName,
    klCoef: given.number('kl_coef'),
    targetKl: given.optionalNumber('target_kl'),
    horizon: given.optionalNumber('horizon'),
  };
}

function pfPpo(testCase: GoldenCase): Outcome {
  const params = paramsOf(testCase);
  const scores_S = (inputsOf(testCase).get('token_level_scores') as unknown[]).map((row) => sum(numbers(row)));
  const weights_S = pfPpoWeights(scores_S, {
    reweightMethod: params.string('reweight_method') as PfPpoMethod,
    weightPow: params.optionalNumber('weight_pow'),
  });
  const drawn = drawWithReplacement(weights_S, scores_S.length, { key: [1, 1], counter: [0, 0, 0] });
  return {
    weights: weights_S,
    probabilities: weights_S.map((weight) => weight / sum(weights_S)),
    num_draws: drawn.length,
    replacement: true,
  };
}

function filterGroups(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const metric_S = numbers(inputs.get('metric'));
  const keptRows: number[] = [];
  const keptPrompts: string[] = [];
  const dropped: Record<string, number> = {};
  for (const [uid, members] of rowsByGroup(inputs.get('uid') as string[])) {
    const prompt = String(uid);
    const values = members.map((s) => at(metric_S, s));
    if (reasonToFilter(values, 'metric') !== undefined) dropped[prompt] = at(values, 0);
    else {
      keptRows.push(...members);
      keptPrompts.push(prompt);
    }
  }
  return {
    kept_rows: keptRows.toSorted((a, b) => a - b),
    kept_prompts: keptPrompts.toSorted(),
    num_prompts_kept: keptPrompts.length,
    evicted_with_value: dropped,
  };
}

function sum(values: ArrayLike<number>): number {
  return Array.from(values).reduce((total, value) => total + value, 0);
}
