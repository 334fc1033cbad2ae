import { describe, expect, it } from 'vitest';
import { batchArithmetic, parseRecipe, runIssues, trainedComponents } from './index.ts';
import type { Tree } from './index.ts';

const recipeOf = (more: Tree) =>
  parseRecipe({ model: { path: './m' }, data: { train_files: './x.jsonl' }, rollout: { n: 4 }, ...more });
const problems = (more: Tree) => runIssues(recipeOf(more)).map(({ path, message }) => `${path}: ${message}`);

describe('a recipe that learns pairs', () => {
  it.each(['dpo', 'rm'] as const)('of kind %s is one optimiser step of two responses to a row', (kind) => {
    const recipe = recipeOf({ kind });
    expect(batchArithmetic(recipe)).toMatchObject({ prompts: 256, responsesPerPrompt: 2, optimizerSteps: 1 });
    expect(trainedComponents(recipe)).toEqual([kind === 'rm' ? 'rewardModel' : 'actor']);
    expect(runIssues(recipe)).toEqual([]);
  });

  it('is refused where a pair may not fit into one forward pass', () => {
    expect(problems({ kind: 'dpo', actor: { ppo_max_token_len_per_gpu: 2047 } })).toEqual([
      expect.stringMatching(/^actor.ppo_max_token_len_per_gpu: the two responses of a pair may have 2048 tokens/),
    ]);
  });

  it.each<readonly [string, Tree, RegExp]>([
    [
      'rows of GSM8K',
      { kind: 'rm', data: { train_files: './x', format: 'gsm8k' } },
      /^data.format: .* learns from pairs/,
    ],
    [
      'smoothing for ipo',
      { kind: 'dpo', algorithm: { dpo_loss_type: 'ipo', dpo_label_smoothing: 0.1 } },
      /^algorithm.dpo_label_smoothing: the loss ipo has no labels/,
    ],
    ['a critic', { kind: 'dpo', critic: { enable: true } }, /^critic.enable/],
    [
      'a reward model',
      { kind: 'dpo', reward: { reward_model: { enable: true, path: './rm' } } },
      /samples no responses/,
    ],
  ])('is refused with %s', (_, more, message) => {
    expect(problems(more)).toEqual([expect.stringMatching(message)]);
  });
});

describe('a recipe with a reward model', () => {
  it.each<readonly [string, Tree, RegExp]>([
    ['is refused without its path', { reward_model: { enable: true } }, /^reward.reward_model.path: .* not named/],
    ['is refused where nothing scores', { scorer: 'none' }, /^reward.scorer: .* rewards need scores/],
    [
      'is refused where the missing scorer has a weight',
      { scorer: 'none', reward_model: { enable: true, path: './rm', scorer_weight: 1 } },
      /^reward.scorer: .*scorer_weight need scores/,
    ],
  ])('%s', (_, reward, message) => {
    expect(problems({ reward })).toEqual([expect.stringMatching(message)]);
  });

  it('is refused where a validation needs the scorer', () => {
    const data = { train_files: './x', val_files: './y' };
    expect(problems({ data, reward: { scorer: 'none', reward_model: { enable: true, path: './rm' } } })).toEqual([
      expect.stringMatching(/validations need scores/),
    ]);
  });

  it('needs no scorer', () => {
    expect(problems({ reward: { scorer: 'none', reward_model: { enable: true, path: './rm' } } })).toEqual([]);
  });
});
