import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arithmeticIssues, batchArithmetic, nearestDivisors, totalIterations } from './arithmetic.ts';
import { recipeChanges } from './changes.ts';
import { mergeTrees, type Tree } from './merge.ts';
import { parseRecipe } from './parse.ts';
import { promises } from './promises.ts';
import { runIssues } from './runnable.ts';
import { scorerSettings } from './scorer-settings.ts';

const base: Tree = {
  model: { path: 'm' },
  data: { train_files: 'a', train_batch_size: 64 },
  actor: { ppo_mini_batch_size: 32, ppo_epochs: 2 },
  rollout: { n: 8 },
};
const recipe = (above: Tree = {}) => parseRecipe(mergeTrees(base, above));

describe('batchArithmetic', () => {
  it('counts prompts, responses and optimiser steps', () => {
    expect(batchArithmetic(recipe())).toMatchObject({
      prompts: 64,
      responses: 512,
      miniBatchResponses: 256,
      miniBatches: 2,
      optimizerSteps: 4,
      longestSequence: 1024,
    });
  });

  it('lets batches span two epochs, so the run has floor(rows × epochs / batch) iterations', () => {
    expect(totalIterations(recipe({ trainer: { total_epochs: 3 } }), 100)).toBe(4);
    expect(totalIterations(recipe({ trainer: { total_training_steps: 7 } }), 100)).toBe(7);
  });
});

describe('arithmeticIssues', () => {
  it('finds nothing in a consistent recipe', () => {
    expect(runIssues(recipe())).toEqual([]);
  });

  it('names the two nearest legal mini-batches', () => {
    expect(arithmeticIssues(recipe({ actor: { ppo_mini_batch_size: 24 } }))[0]).toMatchObject({ expected: '16 or 32' });
    expect(arithmeticIssues(recipe({ actor: { ppo_mini_batch_size: 256 } }))[0]?.hint).toBe(
      'use actor.ppo_mini_batch_size 64, or data.train_batch_size 256',
    );
  });

  it('refuses a sequence longer than a forward pass, and a group of one', () => {
    expect(arithmeticIssues(recipe({ actor: { ppo_max_token_len_per_gpu: 512 } }))[0]?.path).toBe(
      'actor.ppo_max_token_len_per_gpu',
    );
    expect(arithmeticIssues(recipe({ rollout: { n: 1 } }))[0]?.path).toBe('rollout.n');
  });

  it('gives the nearest divisors below and above', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 600 }), (total, value) => {
        const { below, above } = nearestDivisors(total, value);
        expect(total % below).toBe(0);
        if (above !== undefined) expect(total % above).toBe(0);
        for (let between = below + 1; between < Math.min(above ?? total, value); between += 1)
          expect(total % between).not.toBe(0);
      }),
    );
  });
});

describe('runIssues', () => {
  it('refuses weights of files that are not as many as the files', () => {
    const issuesOf = (data: Tree) => runIssues(recipe({ data })).map(({ path }) => path);
    expect(issuesOf({ train_files: ['a', 'b'], train_file_weights: [1, 0.5] })).toEqual([]);
    expect(issuesOf({ train_files: 'a', train_file_weights: [2] })).toEqual([]);
    expect(issuesOf({ train_files: ['a', 'b'], train_file_weights: [1] })).toEqual(['data.train_file_weights']);
  });

  it('refuses a best checkpoint that no validation can choose, or that may not be saved', () => {
    const issuesOf = (tree: Tree) => runIssues(recipe(tree)).map(({ path, message }) => `${path}: ${message}`);
    const best = (trainer: Tree, more: Tree = {}) =>
      issuesOf({
        data: { train_files: 't', val_files: 'v' },
        ...more,
        trainer: { best_metric: 'accuracy', ...trainer },
      });
    expect(best({ test_freq: 4, save_freq: 2 })).toEqual([]);
    expect(best({ test_freq: 4, save_freq: 3 })).toEqual([
      'trainer.best_metric: policies are validated every 4 iterations and saved every 3, so the best one may not be saved',
    ]);
    expect(best({ test_freq: 4, save_freq: -1 })).toEqual([expect.stringContaining('only at the end')]);
    expect(best({ save_freq: 2 })).toEqual(['trainer.best_metric: only the last policy is validated']);
    expect(best({ test_freq: 2, save_freq: 2 }, { data: { train_files: 't' } })).toEqual([
      'trainer.best_metric: there is no validation to choose by',
    ]);
  });

  it('reports each value that is not built, with what works today', () => {
    const asked = recipe({ rollout: { name: 'onnx' }, algorithm: { adv_estimator: 'gigpo' } });
    expect(runIssues(asked).map(({ path, message }) => [path, message])).toEqual([
      ['rollout.name', 'not built yet'],
      ['algorithm.adv_estimator', 'it learns from the steps of agents, and no run has agents yet'],
    ]);
  });

  it('refuses an adapter where an engine has none', () => {
    const issues = (some: object) => runIssues(recipe({ model: { lora_rank: 8 }, ...some })).map(({ path }) => path);
    expect(issues({})).toEqual(['trainer.engine', 'rollout.name']);
    expect(issues({ trainer: { engine: 'torch' } })).toEqual(['rollout.name']);
    expect(issues({ trainer: { engine: 'torch' }, rollout: { name: 'vllm' } })).toEqual([]);
    expect(issues({ kind: 'sft', trainer: { engine: 'torch' } })).toEqual([]);
    const large = recipe({ model: { lora_rank: 513 }, trainer: { engine: 'torch' }, rollout: { name: 'vllm' } });
    expect(runIssues(large).map(({ path }) => path)).toEqual(['model.lora_rank']);
    const given = recipe({ model: { lora_adapter_path: './adapter' } });
    expect(runIssues(given).map(({ path }) => path)).toEqual(['trainer.engine', 'rollout.name']);
  });

  it('refuses the auxiliary loss of a mixture where the engine has none', () => {
    const asked = { actor: { router_aux_loss_coef: 0.001 } };
    expect(runIssues(recipe(asked)).map(({ path }) => path)).toEqual(['actor.router_aux_loss_coef']);
    expect(runIssues(recipe({ ...asked, trainer: { engine: 'torch' } }))).toEqual([]);
  });

  it('refuses an estimator that reads values when the critic is turned off', () => {
    const [issue, ...others] = runIssues(recipe({ critic: { enable: false }, algorithm: { adv_estimator: 'gae' } }));
    expect([issue?.path, issue?.message, others]).toEqual([
      'critic.enable',
      'algorithm.adv_estimator gae needs the values of a critic',
      [],
    ]);
    expect(runIssues(recipe({ algorithm: { adv_estimator: 'gae' } }))).toEqual([]);
  });

  it('refuses a deterministic run with a scorer that is not declared deterministic, in any compute type', () => {
    for (const compute of ['auto', 'fp32', 'bf16']) {
      const made = recipe({
        deterministic: true,
        model: { compute_dtype: compute },
        reward: { custom_reward_function: { path: 's.ts' } },
      });
      expect(runIssues(made).map(({ path }) => path)).toEqual(['reward.custom_reward_function.deterministic']);
    }
  });
});

describe('the reward manager batch', () => {
  it('is for a user’s own scorer, which takes lists', () => {
    const made = (reward: object) => recipe({ reward: { reward_manager: { name: 'batch' }, ...reward } });
    expect(runIssues(made({ custom_reward_function: { path: 's.ts' } }))).toEqual([]);
    expect(runIssues(made({ scorer: 'gsm8k' }))).toMatchObject([
      { path: 'reward.reward_manager.name', expected: 'naive, or reward.custom_reward_function.path' },
    ]);
  });
});

describe('reward.sandbox', () => {
  const paths = (reward: object) => runIssues(recipe({ reward })).map(({ path }) => path);

  it('is for a user’s own scorer', () => {
    expect(paths({ sandbox: true, custom_reward_function: { path: 's.ts' } })).toEqual([]);
    expect(paths({ sandbox: true, scorer: 'gsm8k' })).toEqual(['reward.sandbox']);
  });

  it('can be replaced by a service, for programs', () => {
    const sandbox_fusion = { url: 'http://host:8080/run_code', max_concurrent: 10 };
    const made = recipe({ reward: { sandbox_fusion, num_workers: 4, reward_kwargs: { timeout: 3 } } });
    expect(runIssues(made)).toEqual([]);
    expect(scorerSettings(made)).toEqual({
      timeout: 3,
      sandbox_fusion: { url: sandbox_fusion.url, max_concurrent: 2, memory_limit_mb: 1024 },
    });
    expect(paths({ sandbox_fusion: { url: 'host:8080' } })).toEqual(['reward.sandbox_fusion.url']);
  });
});

describe('promises', () => {
  it('always promises replay, and end to end only for deterministic runs with deterministic scorers', () => {
    expect(promises(recipe(), true)).toMatchObject({ replay: true, endToEnd: false });
    expect(promises(recipe({ deterministic: true }), true).endToEnd).toBe(true);
    expect(promises(recipe({ deterministic: 'replay' }), false).endToEnd).toBe(false);
  });
});

describe('recipeChanges', () => {
  it('shows each changed key with its class', () => {
    const after = recipe({ actor: { optim: { lr: 1e-5 } }, trainer: { save_freq: 5 }, model: { path: 'other' } });
    expect(recipeChanges(recipe(), after).map(({ path, change }) => `${path} ${change}`)).toEqual([
      'model.path fixed',
      'actor.optim.lr ask',
      'trainer.save_freq free',
    ]);
    expect(recipeChanges(after, after)).toEqual([]);
  });
});
