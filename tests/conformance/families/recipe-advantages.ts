import { gigpoParts } from '../../../core/rl/advantages/gigpo.ts';
import { advantageEstimator, type AdvantageBatch, type AdvantageConfig } from '../../../core/rl/advantages/index.ts';
import { rewardsAtLastToken } from '../../../core/rl/advantages/outcomes.ts';
import { lengthAdaptiveAdvantages, lengthAdaptiveLambdas } from '../../../core/rl/advantages/vapo.ts';
import type { GigpoEpisodeStats, GigpoMode } from '../../../core/rl/names.ts';
import { positiveExampleNll } from '../../../core/rl/positive-nll.ts';
import { passingFirst, reasonNotToPass } from '../../../core/rl/prime-filter.ts';
import {
  distancesOfRows,
  promptRate,
  promptSamplingWeight,
  rhoOf,
  startTracker,
  updateTracker,
  type PromptTracker,
} from '../../../core/rl/spo-tracker.ts';
import { pureEvaluator } from '../evaluators.ts';
import { fields, flatten, inputsOf, maskedRows, numbers, paramsOf, unflatten } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const recipeAdvantages = pureEvaluator('recipes', {
  gigpo,
  spo,
  vapo,
  prime_advantage: primeAdvantage,
  prime_filter: primeFilter,
});

/** The reward of a step is its only token reward. */
function gigpo(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const steps = (inputs.get('rows') as Record<string, unknown>[]).map(fields);
  const batch: AdvantageBatch = {
    rows,
    rewards_T: rewardsAtLastToken(
      steps.map((step) => step.number('reward')),
      rows,
    ),
    groups_S: steps.map((step) => step.string('uid')),
    episodes: {
      episodes_S: steps.map((step) => step.string('traj')),
      steps_S: steps.map((step) => step.number('step')),
      anchors_S: steps.map((step) => step.string('anchor')),
    },
  };
  const config: AdvantageConfig = {
    gamma: params.number('gamma'),
    epsilon: params.optionalNumber('epsilon'),
    gigpo: {
      stepAdvantageW: params.number('step_advantage_w'),
      mode: params.string('mode') as GigpoMode,
      episodeStats: params.string('episode_stats') as GigpoEpisodeStats,
    },
  };
  const parts = gigpoParts(batch, config);
  return {
    step_returns: parts.returns_S,
    episode_advantage: parts.episode_S,
    step_advantage: parts.step_S,
    advantages: unflatten(advantageEstimator('gigpo').compute(batch, config).advantages_T, rows),
  };
}

/** Trackers by prompt, through several batches. */
function spo(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const trackers = new Map<string, PromptTracker>();
  for (const [prompt, scores] of Object.entries(inputs.get('offline_scores') as object)) {
    const lowestRho = params.number('rho_clip_lower_or_value');
    trackers.set(prompt, startTracker(numbers(scores), params.number('offline_N'), lowestRho));
  }
  const start = stateOf(trackers);
  return {
    alpha0: start.alpha,
    beta0: start.beta,
    steps: (inputs.get('steps') as Record<string, unknown>[]).map((step) => spoStep(step, testCase, trackers)),
    sampling_weight: ofEach(trackers, (tracker) =>
      promptSamplingWeight(tracker, params.optionalNumber('exploration_epsilon')),
    ),
  };
}

function spoStep(step: Record<string, unknown>, testCase: GoldenCase, trackers: Map<string, PromptTracker>): Outcome {
  const [params, inputs] = [paramsOf(testCase), fields(step)];
  const rows = maskedRows(inputs.get('response_mask'));
  const prompts = inputs.get('prompts') as string[];
  const scores_S = numbers(inputs.get('scores'));
  const before = prompts.map((prompt) => trackers.get(prompt)!);
  const promptValues_S = before.map(promptRate);
  const lowest = params.number('rho_clip_lower_or_value');
  const rho_S =
    params.string('rho_type') === 'constant'
      ? new Float64Array(prompts.length).fill(lowest)
      : distancesOfRows(flatten(inputs.get('old_log_probs')), flatten(inputs.get('cur_log_probs')), rows).map(
          (distance) =>
            rhoOf(distance, {
              lowest,
              highest: params.optionalNumber('rho_clip_upper'),
              halfDistance: params.optionalNumber('D_half'),
            }),
        );
  const { advantages_T } = advantageEstimator('spo').compute(
    { rows, rewards_T: rewardsAtLastToken(scores_S, rows), groups_S: prompts, promptValues_S },
    {},
  );
  prompts.forEach((prompt, s) => trackers.set(prompt, updateTracker(before[s]!, scores_S[s]!, rho_S[s]!)));
  return { advantages: unflatten(advantages_T, rows), p_hats: promptValues_S, rho: rho_S, ...stateOf(trackers) };
}

function stateOf(trackers: ReadonlyMap<string, PromptTracker>) {
  return { alpha: ofEach(trackers, ({ alpha }) => alpha), beta: ofEach(trackers, ({ beta }) => beta) };
}

function ofEach(trackers: ReadonlyMap<string, PromptTracker>, value: (tracker: PromptTracker) => number) {
  return Object.fromEntries([...trackers].map(([prompt, tracker]) => [prompt, value(tracker)]));
}

function vapo(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const batch: AdvantageBatch = {
    rows,
    rewards_T: flatten(inputs.get('token_level_rewards')),
    groups_S: numbers(inputs.get('scores')),
    values_T: flatten(inputs.get('values')),
  };
  const config: AdvantageConfig = {
    gamma: params.number('gamma'),
    vapo: { alpha: params.number('alpha'), lamCritic: params.number('lambda_critic') },
  };
  const { advantages_T, returns_T } = advantageEstimator('vapo').compute(batch, config);
  return {
    lambda_policy: lengthAdaptiveLambdas(rows, params.number('alpha')),
    advantages_raw: unflatten(lengthAdaptiveAdvantages(batch, config), rows),
    returns_critic: unflatten(returns_T, rows),
    advantages_whitened: unflatten(advantages_T, rows),
    positive_nll: positiveExampleNll(flatten(inputs.get('log_prob')), rows, numbers(inputs.get('scores'))).loss,
  };
}

/** A source that the case doesn't give takes no part. */
function primeAdvantage(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const samples = rows.offsets_S1.length - 1;
  const perGroup = params.number('n_samples');
  const scores_S = inputs.has('acc') ? numbers(inputs.get('acc')) : new Float64Array(samples);
  const { advantages_T, returns_T } = advantageEstimator('prime').compute(
    {
      rows,
      rewards_T: rewardsAtLastToken(scores_S, rows),
      groups_S: Array.from({ length: samples }, (_, s) => Math.floor(s / perGroup)),
      processRewards_T: inputs.has('rm_scores') ? flatten(inputs.get('rm_scores')) : undefined,
    },
    {
      rewardDpoCoef: inputs.has('rm_scores') ? params.number('reward_dpo_coef') : 0,
      rewardGtCoef: inputs.has('acc') ? params.number('reward_gt_coef') : 0,
    },
  );
  return { advantages: unflatten(advantages_T, rows), returns: unflatten(returns_T, rows) };
}

/** verl cuts the batch at a row, within a group if it must. */
function primeFilter(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const [scores_S, lengths_S] = [numbers(inputs.get('scores')), numbers(inputs.get('response_lengths'))];
  const perGroup = params.number('n_samples');
  const filter = {
    accuracy: params.flag('filter_accuracy')
      ? { lowest: params.number('accuracy_lower_bound'), highest: params.number('accuracy_upper_bound') }
      : undefined,
    maxResponseLength: params.flag('filter_truncate') ? params.number('max_response_length') : undefined,
  };
  const ofGroup = (values: readonly number[], g: number) => values.slice(g * perGroup, (g + 1) * perGroup);
  const passes_G = Array.from(
    { length: Math.ceil(scores_S.length / perGroup) },
    (_, g) => reasonNotToPass(ofGroup(scores_S, g), ofGroup(lengths_S, g), filter) === undefined,
  );
  const rows = passingFirst(passes_G).flatMap((g) => [...ofGroup(scores_S, g)].map(() => g));
  const kept = rows.slice(0, Math.floor(rows.length / params.number('oversample_factor')));
  return {
    group_passes: passes_G,
    rows_kept: kept.length,
    groups_kept_all_pass: kept.every((g) => passes_G[g] === true),
  };
}
