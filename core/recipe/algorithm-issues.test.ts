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
