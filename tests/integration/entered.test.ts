// @module-tag long
/**
 * What the reference cases call is what runs call: recipes enter every function that a registry of `core/rl` names,
 * each in a whole run of two iterations. The functions are the real ones; they are only counted.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { runIssues } from '../../core/recipe/index.ts';
import { advantageEstimator } from '../../core/rl/advantages/index.ts';
import { aggregateInPlace } from '../../core/rl/aggregate.ts';
import { teacherLoss } from '../../core/rl/distillation/teacher-loss.ts';
import { topkLoss } from '../../core/rl/distillation/topk.ts';
import { reasonToFilter } from '../../core/rl/filter-groups.ts';
import { nextKlCoef } from '../../core/rl/kl-controllers.ts';
import { klInReward } from '../../core/rl/kl-in-reward.ts';
import { klPenalty } from '../../core/rl/kl.ts';
import { lrFactor } from '../../core/rl/lr-schedule.ts';
import {
  ADVANTAGE_NAMES,
  DISTILLATION_LOSSES,
  KL_CONTROLLER_NAMES,
  KL_TYPES,
  LOSS_AGG_MODES,
  PF_PPO_METHODS,
  POLICY_LOSS_NAMES,
  PRIME_LOSSES,
  SPO_RHOS,
} from '../../core/rl/names.ts';
import { pfPpoWeights } from '../../core/rl/pf-ppo.ts';
import { policyLoss } from '../../core/rl/policy-loss/index.ts';
import { primeLoss } from '../../core/rl/prime/reward-model-loss.ts';
import { passingFirst } from '../../core/rl/prime-filter.ts';
import { dapoRewards } from '../../core/rl/reward-managers/dapo.ts';
import { gdpoRewards } from '../../core/rl/reward-managers/gdpo.ts';
import { naiveRewards } from '../../core/rl/reward-managers/naive.ts';
import { REJECTION_STATISTICS } from '../../core/rl/rollout-correction/options.ts';
import { rejectTokens } from '../../core/rl/rollout-correction/rejection.ts';
import { importanceWeights } from '../../core/rl/rollout-correction/weights.ts';
import { distancesOfRows, promptSamplingWeight, startTracker, updateTracker } from '../../core/rl/spo-tracker.ts';
import { valueLoss } from '../../core/rl/value-loss.ts';
import { recipeWith, WAITING, withEstimator, withLoss } from '../algorithm-recipes.ts';
import { InProcessLoop } from '../in-process-loop.ts';

vi.mock('../../core/rl/aggregate.ts', { spy: true });
vi.mock('../../core/rl/distillation/teacher-loss.ts', { spy: true });
vi.mock('../../core/rl/distillation/topk.ts', { spy: true });
vi.mock('../../core/rl/filter-groups.ts', { spy: true });
vi.mock('../../core/rl/kl-controllers.ts', { spy: true });
vi.mock('../../core/rl/kl-in-reward.ts', { spy: true });
vi.mock('../../core/rl/kl.ts', { spy: true });
vi.mock('../../core/rl/lr-schedule.ts', { spy: true });
vi.mock('../../core/rl/pf-ppo.ts', { spy: true });
vi.mock('../../core/rl/prime/reward-model-loss.ts', { spy: true });
vi.mock('../../core/rl/prime-filter.ts', { spy: true });
vi.mock('../../core/rl/spo-tracker.ts', { spy: true });
vi.mock('../../core/rl/reward-managers/dapo.ts', { spy: true });
vi.mock('../../core/rl/reward-managers/gdpo.ts', { spy: true });
vi.mock('../../core/rl/reward-managers/naive.ts', { spy: true });
vi.mock('../../core/rl/rollout-correction/rejection.ts', { spy: true });
vi.mock('../../core/rl/rollout-correction/weights.ts', { spy: true });
vi.mock('../../core/rl/value-loss.ts', { spy: true });

const loop = new InProcessLoop();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

/** A run enters the function; `says`: something that one of its calls must have been given. */
async function enters(
  recipe: Tree,
  spy: { readonly mock: { readonly calls: readonly (readonly unknown[])[] }; mockClear(): unknown },
  was: (...call: readonly never[]) => boolean = () => true,
): Promise<void> {
  spy.mockClear();
  await loop.completed(recipe);
  expect(spy.mock.calls.filter((call) => was(...(call as never[]))).length).toBeGreaterThan(0);
}

const isFed = (name: (typeof ADVANTAGE_NAMES)[number]): boolean =>
  runIssues(recipeWith({ ...withEstimator(name), rollout: { n: 4 } })).length === 0;

describe('a recipe enters', () => {
  it('all estimators but those that wait for agents', () => {
    expect(ADVANTAGE_NAMES.filter((name) => !isFed(name))).toEqual(Object.keys(WAITING));
  });

  it.each(ADVANTAGE_NAMES.filter(isFed))('the advantage estimator %s', (name) =>
    enters(withEstimator(name), vi.spyOn(advantageEstimator(name), 'compute')),
  );

  it.each(POLICY_LOSS_NAMES)('the policy loss %s', (name) =>
    enters(withLoss(name), vi.spyOn(policyLoss(name), 'compute')),
  );

  it.each(SPO_RHOS)('what the estimator spo remembers, with the factor %s', async (type) => {
    const recipe = {
      algorithm: { adv_estimator: 'spo', spo: { rho: { type } } },
      rollout: { n: 1 },
      data: { gen_batch_size: 6 },
      // A pass over the 24 rows takes four iterations.
      trainer: { total_training_steps: 8 },
    };
    vi.mocked(promptSamplingWeight).mockClear();
    vi.mocked(startTracker).mockClear();
    vi.mocked(distancesOfRows).mockClear();
    await enters(recipe, vi.mocked(updateTracker));
    expect(vi.mocked(promptSamplingWeight)).toHaveBeenCalled();
    expect(vi.mocked(startTracker)).toHaveBeenCalled();
    expect(vi.mocked(distancesOfRows).mock.calls.length > 0).toBe(type === 'kl');
  });

  it('the order in which oversampled groups are taken', () =>
    enters({ data: { oversample_factor: 2, filter_accuracy: true } }, vi.mocked(passingFirst)));

  it.each(LOSS_AGG_MODES)('the aggregation %s', (mode) =>
    enters({ actor: { loss_agg_mode: mode } }, vi.mocked(aggregateInPlace), (_1, _2, _3, given) => given === mode),
  );

  it.each(KL_TYPES)('the KL estimator %s, in the loss', (type) =>
    enters(
      { actor: { use_kl_loss: true, kl_loss_type: type } },
      vi.mocked(klPenalty),
      (_1, _2, given) => given === type,
    ),
  );

  it.each(KL_TYPES)('the KL estimator %s, in the reward', (type) =>
    enters(
      { algorithm: { use_kl_in_reward: true, kl_penalty: type } },
      vi.mocked(klInReward),
      (_, given) => given === type,
    ),
  );

  it.each(KL_CONTROLLER_NAMES)('the KL controller %s', (type) =>
    enters(
      { algorithm: { use_kl_in_reward: true, kl_ctrl: { type } } },
      vi.mocked(nextKlCoef),
      (control: { type: string }) => control.type === type,
    ),
  );

  const weights = ['token', 'sequence'].flatMap((level) =>
    [2, '0.5_2'].flatMap((threshold) => [false, true].map((normalised) => ({ level, threshold, normalised }))),
  );
  it.each(weights)('importance weights per $level within $threshold, normalised: $normalised', async (keys) => {
    const { level, threshold, normalised } = keys;
    const rollout_correction = {
      rollout_is: level,
      rollout_is_threshold: threshold,
      rollout_is_batch_normalize: normalised,
    };
    type Options = { level: string; batchNormalize: boolean; bounds: { lower?: number } };
    const isIt = (_: unknown, given: Options) =>
      given.level === level &&
      given.batchNormalize === normalised &&
      (given.bounds.lower !== undefined) === (typeof threshold === 'string');
    await enters({ algorithm: { rollout_correction } }, vi.mocked(importanceWeights), isIt);
  });

  it.each(REJECTION_STATISTICS)('the rejection %s', (statistic) => {
    const rollout_correction = { rollout_rs: statistic, rollout_rs_threshold: 2 };
    return enters(
      { algorithm: { rollout_correction } },
      vi.mocked(rejectTokens),
      (_: unknown, rules: readonly { statistic: string }[]) => rules.some((rule) => rule.statistic === statistic),
    );
  });

  it('the reward manager naive', () => enters({}, vi.mocked(naiveRewards)));
  it('the reward manager dapo', () =>
    enters(
      { reward: { reward_manager: { name: 'dapo' }, overlong_buffer: { enable: true, len: 4 } } },
      vi.mocked(dapoRewards),
    ));
  it('the reward manager gdpo', () => enters(withEstimator('gdpo'), vi.mocked(gdpoRewards)));

  it('the filter of groups, with its metric', () =>
    enters(
      { algorithm: { filter_groups: { enable: true, metric: 'sevens' } } },
      vi.mocked(reasonToFilter),
      (_: unknown, metric: string | undefined) => metric === 'sevens',
    ));

  it.each(PF_PPO_METHODS)('the policy filtration %s', (method) =>
    enters(
      { algorithm: { adv_estimator: 'gae', use_pf_ppo: true, pf_ppo: { reweight_method: method } } },
      vi.mocked(pfPpoWeights),
      (_: unknown, config: { reweightMethod?: string }) => config.reweightMethod === method,
    ),
  );

  it.each(PRIME_LOSSES)('the loss of an implicit reward model %s', (name) =>
    enters(
      { algorithm: { adv_estimator: 'prime' }, reward: { prime: { loss_type: name } } },
      vi.mocked(primeLoss),
      (_: unknown, config: { loss: string }) => config.loss === name,
    ),
  );

  it.each(DISTILLATION_LOSSES)('the loss of a teacher %s', (name) => {
    const topk = name === 'forward_kl_topk';
    // The gradient of k1 is 0 in expectation: it can only be an advantage.
    const use_policy_gradient = name === 'k1' || name === 'kl';
    const distillation_loss = { loss_mode: name, use_policy_gradient, ...(topk && { topk: 4 }) };
    const distillation = { enabled: true, teacher_model: { model_path: loop.modelFolder }, distillation_loss };
    if (topk) return enters({ distillation }, vi.mocked(topkLoss));
    return enters(
      { distillation },
      vi.mocked(teacherLoss),
      (_: unknown, config: { lossMode: string }) => config.lossMode === name,
    );
  });

  it.each(['constant', 'cosine', 'wsd'])('the learning rate schedule %s', (type) =>
    enters(
      { actor: { optim: { lr_scheduler_type: type } } },
      vi.mocked(lrFactor),
      (schedule: { type: string }) => schedule.type === type,
    ),
  );

  it('the loss of values', () => enters(withEstimator('gae'), vi.mocked(valueLoss)));
});
