import { isModulePath } from '../module-path.ts';
import { needsOfEstimator, needsOfLoss } from '../rl/names.ts';
import type { Recipe } from './schema.ts';

/** Names of the components that a recipe trains, as in its records; the policy is first. */
export const trainedComponents = (recipe: Recipe): readonly ['actor', ...string[]] =>
  (recipe.critic.enable ?? readsValues(recipe)) ? ['actor', 'critic'] : ['actor'];

/** Does the advantage estimator read the values of a critic? One of the user's own does if the recipe asks for a critic. */
export const readsValues = ({ kind, algorithm: { adv_estimator: name }, critic }: Recipe): boolean =>
  kind === 'rl' && (isModulePath(name) ? critic.enable === true : needsOfEstimator(name).includes('values'));

/** Does a run read log-probs of the reference policy? */
export const readsReference = ({ kind, actor, algorithm }: Recipe): boolean =>
  kind === 'rl' &&
  (actor.use_kl_loss || algorithm.use_kl_in_reward || needsOfLoss(actor.policy_loss.loss_mode).includes('refLogProbs'));

/** The reward manager of a run: `reward.reward_manager.name`, or what its estimator needs. */
export const rewardManagerOf = ({ reward, algorithm }: Recipe): 'naive' | 'dapo' | 'gdpo' =>
  reward.reward_manager.name ?? (algorithm.adv_estimator === 'gdpo' ? 'gdpo' : 'naive');

/** Names of the scores that every result of the scorer must have. */
export const rewardComponentsOf = (recipe: Recipe): readonly string[] =>
  rewardManagerOf(recipe) === 'gdpo' ? (recipe.algorithm.gdpo_reward_keys ?? []) : [];

/** Where the teacher is, in a run that has one. */
export const teacherOf = ({ kind, distillation }: Recipe): string | undefined =>
  kind === 'rl' && distillation.enabled ? (distillation.teacher_model.model_path ?? undefined) : undefined;
