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
