// @module-tag long
/** What evaluators call is what runs call: functions that reference cases enter are entered by recipes, too. */
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { mergeTrees, parseRecipe, runIssues } from '../../core/recipe/index.ts';
import {
  ADVANTAGE_NAMES,
  DISTILLATION_LOSSES,
  KL_CONTROLLER_NAMES,
  KL_TYPES,
  LOSS_AGG_MODES,
  PF_PPO_METHODS,
  POLICY_LOSS_NAMES,
  PRIME_LOSSES,
} from '../../core/rl/names.ts';
import { REJECTION_STATISTICS } from '../../core/rl/rollout-correction/options.ts';
import { bothCorrections, withEstimator, withLoss } from '../algorithm-recipes.ts';
import { loadGolden } from '../conformance/load.ts';
import { evaluators } from '../conformance/registry.ts';
import { runFile } from '../conformance/run.ts';
import { InProcessLoop } from '../in-process-loop.ts';

const golden = fileURLToPath(new URL('../golden', import.meta.url));
const loop = new InProcessLoop();
const session = new Session();
beforeAll(async () => {
  await loop.up();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
});
afterAll(async () => {
  session.disconnect();
  await loop.remove();
});

/** Functions of `core/rl` that were entered since the last call, as `file function`. */
async function entered(): Promise<Set<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const found = new Set<string>();
  for (const { url, functions } of result) {
    const file = /core\/rl\/(.*)\.ts$/.exec(url)?.[1];
    if (file === undefined || file.endsWith('.test-support')) continue;
    for (const { functionName, ranges } of functions)
      if (functionName !== '' && (ranges[0]?.count ?? 0) > 0) found.add(`${file} ${functionName}`);
  }
  return found;
}

const correction = (keys: Tree): Tree => ({ algorithm: { rollout_correction: keys } });
const learntFrom = (name: string): Tree => ({
  distillation: {
    enabled: true,
    teacher_model: { model_path: loop.modelFolder },
    distillation_loss: { loss_mode: name, use_policy_gradient: name === 'k1' || name === 'kl', topk: 4 },
  },
});
/** Each name of a registry in one run. */
const recipes = (): Tree[] => [
  ...ADVANTAGE_NAMES.map(withEstimator),
  ...POLICY_LOSS_NAMES.map(withLoss),
  ...LOSS_AGG_MODES.map((mode) => ({ actor: { loss_agg_mode: mode, entropy_coeff: 0.01 } })),
  ...KL_TYPES.map((type) => ({ actor: { use_kl_loss: true, kl_loss_type: type } })),
  ...KL_CONTROLLER_NAMES.map((type) => ({ algorithm: { use_kl_in_reward: true, kl_ctrl: { type } } })),
  ...REJECTION_STATISTICS.map((name) => correction({ rollout_rs: name, rollout_rs_threshold: 2 })),
  correction({ rollout_is: 'sequence', rollout_is_batch_normalize: true, rollout_is_threshold: '0.5_2' }),
  mergeTrees(correction(bothCorrections), withLoss('geo_mean')),
  mergeTrees(withLoss('bypass_mode'), correction({ loss_type: 'reinforce' })),
  mergeTrees(withEstimator('gdpo'), { algorithm: { gdpo_reward_weights: [1, 2] } }),
  ...PF_PPO_METHODS.map((method) => ({
    algorithm: { adv_estimator: 'gae', use_pf_ppo: true, pf_ppo: { reweight_method: method } },
  })),
  ...PRIME_LOSSES.map((name) => ({ algorithm: { adv_estimator: 'prime' }, reward: { prime: { loss_type: name } } })),
  ...DISTILLATION_LOSSES.map(learntFrom),
  { reward: { reward_manager: { name: 'dapo' }, overlong_buffer: { enable: true, len: 4 } } },
  { algorithm: { filter_groups: { enable: true } } },
  ...['cosine', 'wsd'].map((type) => ({ actor: { optim: { lr_scheduler_type: type } } })),
  { actor: { ppo_max_token_len_per_gpu: 40, use_prefix_grouper: false } },
  { actor: { positive_nll_coef: 0.1 } },
  // A pass over the 24 rows takes four iterations.
  {
    algorithm: { adv_estimator: 'spo' },
    rollout: { n: 1 },
    data: { gen_batch_size: 6 },
    trainer: { total_training_steps: 8 },
  },
  { data: { oversample_factor: 2, filter_accuracy: true, filter_truncate: true } },
  { kind: 'sft', data: { train_files: loop.inputs.rows('sft'), max_length: 24 } },
  { data: { val_files: loop.inputs.rows('rl') }, rollout: { val_kwargs: { n: 8, do_sample: true, temperature: 1 } } },
];

/** Functions of reference cases that no run enters, by the beginning of their names, each with what it waits for. */
const others: readonly (readonly [reason: string, ...names: string[]])[] = [
  ['agents: episodes of several turns', 'advantages/gigpo ', 'advantages/sessions ', 'advantages/groups divideRows'],
  [
    'nothing: it forms the input of a case, a default or an error',
    'ragged raggedRows',
    'validation-metrics coreOf',
    'positive-nll countPositiveTokens',
    'advantages/gdpo named',
    'rollout-correction/threshold notAThreshold',
  ],
];

it('recipes enter the functions that reference cases enter, but for a table', async () => {
  const families = ['advantages', 'balancing', 'losses', 'metrics', 'policy_loss', 'recipes'];
  await entered();
  for (const file of await loadGolden(golden, families)) await runFile(file, evaluators);
  const byCases = await entered();
  expect(byCases.size).toBeGreaterThan(300);
  for (const recipe of recipes())
    if (runIssues(parseRecipe(loop.recipe(recipe))).length === 0) await loop.completed(recipe);
  const byRuns = await entered();
  const never = [...byCases].filter((one) => !byRuns.has(one)).toSorted();
  const reasonOf = (one: string) => others.find(([, ...names]) => names.some((name) => one.startsWith(name)))?.[0];
  expect(never.filter((one) => reasonOf(one) === undefined)).toEqual([]);
  // A row whose functions are entered now is to be removed.
  for (const [, ...names] of others)
    for (const name of names) expect(never.filter((one) => one.startsWith(name)).length, name).toBeGreaterThan(0);
  expect(others.length).toBeLessThanOrEqual(8);
});
