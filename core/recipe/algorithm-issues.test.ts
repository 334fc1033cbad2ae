import { describe, expect, it } from 'vitest';
import { mergeTrees } from './merge.ts';
import type { Tree } from './merge.ts';
import { parseRecipe } from './parse.ts';
import { runIssues } from './runnable.ts';

const small = { model: { path: 'm' }, data: { train_files: 'd' }, rollout: { n: 5 } };
const issuesOf = (keys: Tree) => runIssues(parseRecipe(mergeTrees(small, keys)));

describe('a KL penalty in the reward', () => {
  it('can be asked for, with a fixed and an adaptive coefficient', () => {
    expect(issuesOf({ algorithm: { use_kl_in_reward: true } })).toEqual([]);
    expect(issuesOf({ algorithm: { use_kl_in_reward: true, kl_ctrl: { type: 'adaptive' } } })).toEqual([]);
  });

  it('is refused with an adaptive coefficient that one batch could turn negative', () => {
    const kl_ctrl = { type: 'adaptive', horizon: 1024 };
    expect(issuesOf({ algorithm: { use_kl_in_reward: true, kl_ctrl } })).toMatchObject([
      { path: 'algorithm.kl_ctrl.horizon', expected: 'number > 1024', received: '1024' },
    ]);
    expect(issuesOf({ algorithm: { use_kl_in_reward: false, kl_ctrl } })).toEqual([]);
  });
});

describe('a trainer of its own for the critic', () => {
  const own = { critic: { own_trainer: true } };

  it('needs a critic', () => {
    expect(issuesOf(own)).toMatchObject([{ path: 'critic.own_trainer', expected: 'false', received: 'true' }]);
    expect(issuesOf({ ...own, kind: 'sft' })).toMatchObject([{ path: 'critic.own_trainer' }]);
    expect(issuesOf({ critic: { own_trainer: true, enable: true } })).toEqual([]);
    expect(issuesOf({ ...own, algorithm: { adv_estimator: 'gae' } })).toEqual([]);
  });

  it('cannot have returns that the update makes from a new reward model', () => {
    const prime = (update: string) => ({
      critic: { own_trainer: true, enable: true },
      algorithm: { adv_estimator: 'prime' },
      reward: { prime: { update } },
    });
    expect(issuesOf(prime('before'))).toMatchObject([{ path: 'critic.own_trainer' }]);
    expect(issuesOf(prime('after'))).toEqual([]);
  });
});

describe('iterations that train only the critic', () => {
  it('need one', () => {
    expect(issuesOf({ trainer: { critic_warmup: 3 } })).toMatchObject([
      { path: 'trainer.critic_warmup', expected: '0' },
    ]);
    expect(issuesOf({ trainer: { critic_warmup: 1 } })).toEqual([]);
    expect(issuesOf({ trainer: { critic_warmup: 3 }, critic: { enable: true } })).toEqual([]);
    expect(issuesOf({ trainer: { critic_warmup: 3 }, algorithm: { adv_estimator: 'gae' } })).toEqual([]);
  });
});

describe('a penalty for long responses', () => {
  const buffer = { enable: true, len: 64 };

  it('needs the reward manager dapo, and a buffer that fits into the response', () => {
    const name = 'dapo';
    expect(issuesOf({ reward: { reward_manager: { name }, overlong_buffer: buffer } })).toEqual([]);
    expect(issuesOf({ reward: { reward_manager: { name: 'prime' } } })).toEqual([]);
    expect(issuesOf({ reward: { overlong_buffer: buffer } })).toMatchObject([{ path: 'reward.reward_manager.name' }]);
    for (const len of [null, 4096])
      expect(issuesOf({ reward: { reward_manager: { name }, overlong_buffer: { ...buffer, len } } })).toMatchObject([
        { path: 'reward.overlong_buffer.len', expected: 'integer from 1 to 512', received: `${len}` },
      ]);
  });

  it('is not a setting of the scorer', () => {
    expect(issuesOf({ reward: { reward_kwargs: { overlong_buffer_cfg: buffer } } })).toMatchObject([
      { path: 'reward.reward_kwargs.overlong_buffer_cfg' },
    ]);
  });
});

describe('oversampling', () => {
  const factor = { oversample_factor: 4 };
  const pathsOf = (keys: Tree) => issuesOf(keys).map(({ path }) => path);

  it('takes a whole number of prompts, and filters only where there is a choice', () => {
    expect(pathsOf({ data: { ...factor, filter_accuracy: true, filter_truncate: true } })).toEqual([]);
    expect(pathsOf({ data: { oversample_factor: 1.5 } })).toEqual([]);
    expect(pathsOf({ data: { oversample_factor: 1.0001 } })).toEqual(['data.oversample_factor']);
    expect(pathsOf({ data: { filter_accuracy: true } })).toEqual(['data.filter_accuracy']);
    expect(pathsOf({ data: { filter_truncate: true } })).toEqual(['data.filter_truncate']);
    expect(pathsOf({ data: { ...factor, filter_accuracy: true, accuracy_lower_bound: 0.9 } })).toEqual([
      'data.accuracy_lower_bound',
    ]);
  });

  it('is refused beside another choice of prompts', () => {
    expect(pathsOf({ data: factor, algorithm: { filter_groups: { enable: true } } })).toEqual([
      'algorithm.filter_groups.enable',
    ]);
    const spo = { algorithm: { adv_estimator: 'spo' }, data: { ...factor, gen_batch_size: 2048 } };
    expect(pathsOf(spo)).toEqual(['data.gen_batch_size']);
    const unscored = { scorer: 'none', reward_model: { enable: true, path: 'r' } };
    expect(pathsOf({ data: { ...factor, filter_accuracy: true }, reward: unscored })).toEqual(['data.filter_accuracy']);
  });
});

describe('a sampler of the user’s own', () => {
  const pathsOf = (keys: Tree) => issuesOf(mergeTrees({ data: { sampler: './s.ts' } }, keys)).map(({ path }) => path);

  it('decides alone which prompts come', () => {
    expect(pathsOf({})).toEqual([]);
    expect(pathsOf({ data: { gen_batch_size: 2048 } })).toEqual([]);
    expect(pathsOf({ data: { gen_batch_size: 512 } })).toEqual(['data.gen_batch_size']);
    expect(pathsOf({ data: { curriculum: { enable: true } } })).toEqual(['data.curriculum.enable']);
    expect(pathsOf({ data: { oversample_factor: 2 } })).toEqual(['data.oversample_factor']);
    expect(pathsOf({ algorithm: { filter_groups: { enable: true } } })).toEqual(['algorithm.filter_groups.enable']);
    expect(pathsOf({ algorithm: { adv_estimator: 'spo' } })).toEqual(['algorithm.adv_estimator']);
    expect(pathsOf({ kind: 'sft' })).toEqual(['data.sampler']);
    const unscored = { scorer: 'none', reward_model: { enable: true, path: 'r' } };
    expect(pathsOf({ reward: unscored })).toEqual(['data.sampler']);
  });
});

describe('the estimator spo', () => {
  const spo = { algorithm: { adv_estimator: 'spo' }, rollout: { n: 1 } };
  const pathsOf = (keys: Tree) => issuesOf(mergeTrees(spo, keys)).map(({ path }) => path);

  it('takes one response to a prompt, and more prompts to choose from', () => {
    expect(pathsOf({})).toEqual([]);
    expect(pathsOf({ data: { gen_batch_size: 2048 } })).toEqual([]);
    expect(pathsOf({ data: { gen_batch_size: 512 } })).toEqual(['data.gen_batch_size']);
    expect(pathsOf({ data: { train_batch_size: 1 }, actor: { ppo_mini_batch_size: 1 } })).toEqual([
      'data.train_batch_size',
    ]);
  });

  it('is refused with what is no score between 0 and 1, or chooses prompts in another way', () => {
    expect(pathsOf({ algorithm: { use_kl_in_reward: true } })).toEqual(['algorithm.use_kl_in_reward']);
    const overlong_buffer = { enable: true, len: 8 };
    expect(pathsOf({ reward: { reward_manager: { name: 'dapo' }, overlong_buffer } })).toEqual([
      'reward.overlong_buffer.enable',
    ]);
    expect(pathsOf({ data: { curriculum: { enable: true } } })).toEqual(['data.curriculum.enable']);
    expect(pathsOf({ rollout: { n: 2 }, algorithm: { filter_groups: { enable: true } } })).toEqual([
      'algorithm.filter_groups.enable',
    ]);
    expect(pathsOf({ reward: { reward_model: { enable: true, path: 'r' } } })).toEqual(['algorithm.adv_estimator']);
  });
});

describe('the estimator gdpo', () => {
  const gdpo = { adv_estimator: 'gdpo', gdpo_reward_keys: ['acc', 'format'] };

  it('needs names of scores, and a weight for each if there are any', () => {
    expect(issuesOf({ algorithm: gdpo })).toEqual([]);
    expect(issuesOf({ algorithm: { ...gdpo, gdpo_reward_weights: [1, 2] } })).toEqual([]);
    expect(issuesOf({ algorithm: { adv_estimator: 'gdpo' } })).toMatchObject([{ path: 'algorithm.gdpo_reward_keys' }]);
    expect(issuesOf({ algorithm: { ...gdpo, gdpo_reward_weights: [1] } })).toMatchObject([
      { path: 'algorithm.gdpo_reward_weights', expected: '2 numbers, or null', received: '1' },
    ]);
  });

  it('needs its reward manager, and no KL in a reward that it does not read', () => {
    expect(issuesOf({ algorithm: gdpo, reward: { reward_manager: { name: 'naive' } } })).toMatchObject([
      { path: 'reward.reward_manager.name' },
    ]);
    expect(issuesOf({ algorithm: { ...gdpo, use_kl_in_reward: true } })).toMatchObject([
      { path: 'algorithm.use_kl_in_reward' },
    ]);
  });
});

describe('a rollout correction', () => {
  const correct = (keys: Tree, loss_mode = 'vanilla') =>
    issuesOf({ algorithm: { rollout_correction: keys }, actor: { policy_loss: { loss_mode } } });

  it('can be asked for with weights, rejection and without old log-probs', () => {
    expect(
      correct({
        rollout_is: 'token',
        rollout_is_threshold: '0.5_5',
        rollout_rs: 'seq_mean_k1',
        rollout_rs_threshold: 1.01,
      }),
    ).toEqual([]);
    expect(correct({ bypass_mode: true })).toEqual([]);
    expect(correct({ bypass_mode: true, rollout_is: 'sequence' }, 'bypass_mode')).toEqual([]);
  });

  it.each([
    [{ rollout_is: 'token', rollout_is_threshold: '5_0.5' }, 'rollout_is_threshold'],
    [{ rollout_is: 'token', rollout_is_threshold: '0.5_1_2' }, 'rollout_is_threshold'],
    [{ rollout_rs: 'seq_mean_k4', rollout_rs_threshold: 1 }, 'rollout_rs'],
    [{ rollout_rs: 'token_k1,token_k2,token_k3', rollout_rs_threshold: '1,2' }, 'rollout_rs_threshold'],
    [{ rollout_rs: 'token_k2', rollout_rs_threshold: '0.5_2' }, 'rollout_rs_threshold'],
    [{ rollout_rs: 'token_k1' }, 'rollout_rs'],
  ])('is refused where it cannot be read: %j', (keys, name) => {
    expect(correct(keys)).toMatchObject([{ path: `algorithm.rollout_correction.${name}` }]);
  });

  it('is refused where the loss would not apply it', () => {
    const [loss, bypass] = ['actor.policy_loss.loss_mode', 'algorithm.rollout_correction.bypass_mode'];
    expect(correct({ bypass_mode: true, rollout_is: 'token' })).toMatchObject([
      { path: loss, expected: 'bypass_mode' },
    ]);
    expect(correct({}, 'bypass_mode')).toMatchObject([{ path: bypass, expected: 'true' }]);
    const keys = { bypass_mode: true, rollout_is: 'token', rollout_is_batch_normalize: true };
    expect(correct({ ...keys, loss_type: 'reinforce' }, 'bypass_mode')).toMatchObject([
      { path: 'algorithm.rollout_correction.rollout_is_batch_normalize', expected: 'false' },
    ]);
    expect(
      issuesOf({ algorithm: { adv_estimator: 'optimal_token_baseline', rollout_correction: { bypass_mode: true } } }),
    ).toMatchObject([{ path: bypass, expected: 'false' }]);
    expect(correct({ rollout_is: 'token' }, 'sppo')).toMatchObject([
      { path: 'algorithm.rollout_correction.rollout_is' },
    ]);
  });
});
