/** Checks of `reward.reward_model`, and of what cannot read its scores. */
import { needsOfEstimator } from '../rl/names.ts';
import type { AdvantageNeed } from '../rl/names.ts';
import { samplesResponses } from '../run-kinds.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

export function rewardModelIssues(recipe: Recipe): RecipeIssue[] {
  const { kind, reward } = recipe;
  const { enable, path } = reward.reward_model;
  if (samplesResponses(kind) && isUnscored(recipe)) {
    const issues = unscoredIssues(recipe);
    if (issues.length > 0) return issues;
  }
  if (!enable) return [];
  if (!samplesResponses(kind))
    return [
      {
        path: 'reward.reward_model.enable',
        message: `a run of kind ${kind} samples no responses, so there is nothing to score`,
        expected: 'false',
        received: 'true',
      },
    ];
  if (path === null) {
    const message = 'a reward model is enabled and not named';
    return [{ path: 'reward.reward_model.path', message, expected: 'folder or hub name', received: 'null' }];
  }
  return [...estimatorIssues(recipe), ...choiceIssues(recipe)];
}

const isUnscored = ({ reward }: Recipe): boolean =>
  reward.scorer === 'none' && reward.custom_reward_function.path === null;

function unscoredIssues({ data, reward }: Recipe): RecipeIssue[] {
  const { enable, scorer_weight: ofScorer } = reward.reward_model;
  if (enable && ofScorer === 0 && data.val_files === null) return [];
  const use = data.val_files !== null ? 'validations' : enable ? 'reward.reward_model.scorer_weight' : 'rewards';
  const hint =
    'name a scorer, or train on a reward model alone: reward.reward_model.enable=true, without data.val_files';
  return [{ path: 'reward.scorer', message: `the scorer none scores nothing, and ${use} need scores`, hint }];
}

/** Why an estimator that needs something cannot learn from a reward model. The model scores only sampled responses. */
const REFUSED: Partial<Readonly<Record<AdvantageNeed, string>>> = {
  greedyBaselines: 'compares with the score of a greedy response, which the reward model does not score',
  components: 'reads the components of the score and not the reward',
  promptValues: 'counts successes between 0 and 1, and the score of a reward model is any number',
  processRewards: 'learns accuracies between 0 and 1, and the score of a reward model is any number',
};

function estimatorIssues({ algorithm: { adv_estimator: estimator } }: Recipe): RecipeIssue[] {
  return needsOfEstimator(estimator).flatMap((need) => {
    const why = REFUSED[need];
    if (why === undefined) return [];
    const message = `${estimator} ${why}`;
    return [{ path: 'algorithm.adv_estimator', message, received: estimator, hint: 'use grpo, or gae with a critic' }];
  });
}

/** Prompts are chosen when their responses are sampled; the reward model scores the batch that is made of them. */
function choiceIssues(recipe: Recipe): RecipeIssue[] {
  const { filter_groups: filter } = recipe.algorithm;
  const { curriculum } = recipe.data;
  if (isUnscored(recipe) && recipe.data.sampler !== null)
    return [
      { path: 'data.sampler', message: 'it reads scores of the scorer, and there is none', hint: 'name a scorer' },
    ];
  const path = 'data.filter_accuracy';
  const message = 'prompts are chosen by numbers of the scorer, and there is none';
  if (isUnscored(recipe) && recipe.data.filter_accuracy)
    return [{ path, message, expected: 'false', received: 'true', hint: 'name a scorer' }];
  const choices = [
    { section: 'algorithm.filter_groups', ...filter },
    { section: 'data.curriculum', ...curriculum },
  ];
  return choices.flatMap(({ section, enable, metric }) => {
    if (!enable || (metric !== null && !isUnscored(recipe))) return [];
    const message = 'prompts are chosen by numbers of the scorer, before the reward model scores their responses';
    return isUnscored(recipe)
      ? [{ path: `${section}.enable`, message, expected: 'false', received: 'true', hint: 'name a scorer' }]
      : [{ path: `${section}.metric`, message, received: 'null', hint: `${section}.metric=score is the scorer’s` }];
  });
}
