import { isModulePath } from '../module-path.ts';
import { needsOfEstimator, needsOfLoss } from '../rl/names.ts';
import { runKinds } from '../run-kinds.ts';
import type { Recipe } from './schema.ts';

/** Names of the components that a recipe trains, as in its records; what the run is about is first. */
export function trainedComponents(recipe: Recipe): readonly [string, ...string[]] {
  const critic = recipe.critic.enable ?? readsValues(recipe);
  return [
    runKinds[recipe.kind].trains,
    ...(critic ? ['critic'] : []),
    ...(readsLogZ(recipe) ? ['logZ'] : []),
    ...(readsRewardModel(recipe) ? ['rewardModel'] : []),
  ];
}

/**
 * The components in groups that are trained together; what the run is about is in the first. Two where the critic has
 * jobs of its own.
 */
export function trainedTogether(recipe: Recipe): readonly (readonly [string, ...string[]])[] {
  const [main, ...others] = trainedComponents(recipe);
  if (!recipe.critic.own_trainer || !others.includes('critic')) return [[main, ...others]];
  return [[main, ...others.filter((name) => name !== 'critic')], ['critic']];
}

/**
 * Does the advantage estimator read the values of a critic? One of the user's own does if the recipe asks for a critic.
 */
export const readsValues = ({ kind, algorithm: { adv_estimator: name }, critic }: Recipe): boolean =>
  kind === 'rl' && (isModulePath(name) ? critic.enable === true : needsOfEstimator(name).includes('values'));

/** Does a module of the user's own weigh the rows? */
export const hasOwnSampler = ({ kind, data }: Recipe): boolean => kind === 'rl' && data.sampler !== null;

/** Does the advantage estimator compare with what each prompt has scored before? */
export const tracksPrompts = ({ kind, algorithm }: Recipe): boolean =>
  kind === 'rl' && needsOfEstimator(algorithm.adv_estimator).includes('promptValues');

/**
 * How scores become rewards in a run: `reward.reward_manager.name`, or what its estimator needs. The managers that say
 * where, how often and with what scorers are called leave the score as it is.
 */
export function rewardManagerOf({ reward, algorithm }: Recipe): 'naive' | 'dapo' | 'gdpo' {
  const { name } = reward.reward_manager;
  if (name === 'batch' || name === 'prime' || name === 'rate_limited' || name === 'remote') return 'naive';
  return name ?? (algorithm.adv_estimator === 'gdpo' ? 'gdpo' : 'naive');
}

/** Does a call of the user's scorer get all responses to a prompt? */
export const scoresLists = ({ reward }: Recipe): boolean => reward.reward_manager.name === 'batch';

/** Names of the scores that every result of the scorer must have. */
export const rewardComponentsOf = (recipe: Recipe): readonly string[] =>
  rewardManagerOf(recipe) === 'gdpo' ? (recipe.algorithm.gdpo_reward_keys ?? []) : [];

/** The path of the teacher, in a run that has one. */
export const teacherOf = ({ kind, distillation }: Recipe): string | undefined =>
  kind === 'rl' && distillation.enabled ? (distillation.teacher_model.model_path ?? undefined) : undefined;

/** Does the loss read an estimate of each prompt's log partition function? */
const readsLogZ = ({ kind, actor }: Recipe): boolean =>
  kind === 'rl' && needsOfLoss(actor.policy_loss.loss_mode).includes('logZ');

/** Does the advantage estimator read rewards of an implicit reward model? */
const readsRewardModel = ({ kind, algorithm }: Recipe): boolean =>
  kind === 'rl' && needsOfEstimator(algorithm.adv_estimator).includes('processRewards');

/** Are log-probs of the reference policy read, by a loss or a reward model? */
export const readsReference = (recipe: Recipe): boolean =>
  recipe.kind === 'dpo' ||
  (recipe.kind === 'rl' &&
    (recipe.actor.use_kl_loss ||
      recipe.algorithm.use_kl_in_reward ||
      needsOfLoss(recipe.actor.policy_loss.loss_mode).includes('refLogProbs') ||
      readsRewardModel(recipe)));
