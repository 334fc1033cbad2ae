import { advantageEstimator, type AdvantageBatch, type AdvantageConfig } from '../../../core/rl/advantages/index.ts';
import { outcomeScores } from '../../../core/rl/advantages/outcomes.ts';
import { ADVANTAGE_NAMES } from '../../../core/rl/names.ts';
import { maskCounts } from '../../../core/rl/ragged.ts';
import { pureEvaluator } from '../evaluators.ts';
import { flatten, inputsOf, maskedRows, numbers, paramsOf, unflatten } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const advantages = pureEvaluator('advantages', {
  ...Object.fromEntries(ADVANTAGE_NAMES.map((name) => [name, (testCase: GoldenCase) => estimate(name, testCase)])),
  multi_output_sessions: (testCase) => estimate('grpo', testCase),
});

/** What a case gives by verl's names, as the batch and settings of an estimator; padding stays, with mask 0. */
function estimate(name: string, testCase: GoldenCase): Outcome {
  const batch = name === 'gdpo' ? withComponents(batchOf(name, testCase)) : batchOf(name, testCase);
  const { advantages_T, returns_T } = advantageEstimator(name).compute(batch, configOf(name, testCase));
  const results = { advantages: unflatten(advantages_T, batch.rows), returns: unflatten(returns_T, batch.rows) };
  return name === 'opo' ? withoutTokens(results, batch) : results;
}

function batchOf(name: string, testCase: GoldenCase): AdvantageBatch {
  const inputs = inputsOf(testCase);
  const tokens = (key: string) => (inputs.has(key) ? flatten(inputs.get(key)) : undefined);
  const rows = maskedRows(inputs.get('response_mask'));
  const index = (inputs.get('index') ?? inputs.get('uid') ?? []) as readonly unknown[];
  return {
    rows,
    rewards_T: flatten(inputs.get('token_level_rewards')),
    groups_S: name === 'grpo_vectorized' ? tensorIndices(index) : index,
    values_T: tokens('values'),
    oldLogProb_T: tokens('old_log_probs'),
    sumPiSquared_T: tokens('sum_pi_squared'),
    rolloutIsWeights_T: tokens('rollout_is_weights'),
    greedyBaselines_S: inputs.has('reward_baselines') ? numbers(inputs.get('reward_baselines')) : undefined,
    components: componentsOf(inputs.get('components')),
    sessions: inputs.has('keys') ? sessionsOf(inputs.get('keys') as readonly string[]) : undefined,
  };
}

function configOf(name: string, testCase: GoldenCase): AdvantageConfig {
  const params = paramsOf(testCase);
  const flag = (key: string) => (params.has(key) ? params.flag(key) : undefined);
  const weights = params.get('gdpo_reward_weights');
  return {
    gamma: params.optionalNumber('gamma'),
    lam: params.optionalNumber('lam'),
    normAdvByStdInGrpo: flag('norm_adv_by_std_in_grpo'),
    gdpoRewardKeys: (params.get('gdpo_reward_keys') ?? (name === 'gdpo' ? [WHOLE_SCORE] : undefined)) as string[],
    gdpoRewardWeights: weights === undefined ? undefined : numbers(weights),
    fNorm: params.optionalNumber('f_norm'),
    handleZeroTail: flag('handle_zero_tail'),
    epsilon: params.optionalNumber('epsilon'),
  };
}

const WHOLE_SCORE = 'score';

/** Called without components, verl's function takes the outcome score for the only one. */
function withComponents(batch: AdvantageBatch): AdvantageBatch {
  return { ...batch, components: batch.components ?? { [WHOLE_SCORE]: outcomeScores(batch.rewards_T, batch.rows) } };
}

function componentsOf(given: unknown): Record<string, number[]> | undefined {
  if (given === undefined) return undefined;
  return Object.fromEntries(Object.entries(given as object).map(([key, scores]) => [key, numbers(scores)]));
}

/** verl turns ids into tensor indices first: ids that Python parses as integers merge by value. */
function tensorIndices(index: readonly unknown[]): readonly unknown[] {
  const parsed = index.map((id) => (typeof id === 'number' ? Math.trunc(id) : pythonInteger(String(id))));
  return parsed.includes(undefined) ? index : parsed;
}

/** `{uid}_{session}_{index}`, split from the right. */
function sessionsOf(keys: readonly string[]): AdvantageBatch['sessions'] {
  const parts = keys.map((key) => {
    const [, session, index] = /^(.*_.*)_([^_]*)$/s.exec(key) ?? [];
    const output = pythonInteger(index ?? '');
    if (session === undefined || output === undefined) throw new Error(`unexpected key "${key}"`);
    return { session, output };
  });
  return { sessions_S: parts.map(({ session }) => session), outputs_S: parts.map(({ output }) => output) };
}

function pythonInteger(text: string): number | undefined {
  return /^\s*[+-]?\d+(_\d+)*\s*$/.test(text) ? Number(text.replaceAll('_', '')) : undefined;
}

/** verl divides 0 by 0 in a group without a valid token, and NaN · 0 is NaN. */
function withoutTokens(results: Outcome, { rows, groups_S }: AdvantageBatch): Outcome {
  const counts_S = maskCounts(rows);
  const groups = Array.from(groups_S);
  const isEmpty = (group: unknown) =>
    groups.filter((other) => other === group).length > 1 &&
    groups.every((other, s) => other !== group || counts_S[s] === 0);
  const spoil = (matrix: unknown) =>
    (matrix as number[][]).map((row, s) => (isEmpty(groups[s]) ? row.map(() => NaN) : row));
  return { advantages: spoil(results['advantages']), returns: spoil(results['returns']) };
}
