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

  const reward = { scorer: 'exact', reward_model: { enable: true, path: './rm' } };

  it.each<readonly [string, RegExp]>([
    ['remax', /^algorithm.adv_estimator: remax compares with the score of a greedy response/],
    ['prime', /^algorithm.adv_estimator: prime learns accuracies between 0 and 1/],
  ])('is refused with the estimator %s, which cannot read its scores', (estimator, message) => {
    expect(problems({ reward, algorithm: { adv_estimator: estimator } })).toEqual([expect.stringMatching(message)]);
  });

  it('is refused with gdpo, whose components it does not give', () => {
    const algorithm = { adv_estimator: 'gdpo', gdpo_reward_keys: ['a', 'b'] };
    expect(problems({ reward, algorithm })).toEqual([expect.stringMatching(/gdpo reads the components of the score/)]);
  });

  it.each<readonly [string, (more: Tree) => Tree]>([
    ['algorithm.filter_groups', (more) => ({ algorithm: { filter_groups: { enable: true, ...more } } })],
    ['data.curriculum', (more) => ({ data: { train_files: './x', curriculum: { enable: true, ...more } } })],
  ])(
    'is refused where %s would choose by a score that is not the reward, unless its metric is named',
    (section, of) => {
      const refused = (path: string) => [
        expect.stringContaining(`${section}.${path}: prompts are chosen by numbers of`),
      ];
      expect(problems({ reward, ...of({}) })).toEqual(refused('metric'));
      expect(problems({ reward, ...of({ metric: 'score' }) })).toEqual([]);
      const alone = { ...reward, scorer: 'none' };
      expect(problems({ reward: alone, ...of({ metric: 'score' }) })).toEqual(refused('enable'));
    },
  );

  it('needs no scorer', () => {
    expect(problems({ reward: { scorer: 'none', reward_model: { enable: true, path: './rm' } } })).toEqual([]);
  });
});
