/**
 * Loss of a reward model on pairs of responses (Bradley and Terry 1952; Ouyang et al. 2022, arXiv 2203.02155; TRL:
 * `RewardTrainer`): −log σ(r_chosen − r_rejected), the mean over pairs. Only differences matter, so the level of the
 * rewards is free.
 */
import { preferenceLoss, type PreferenceLoss } from './preference-loss.ts';
import type { Numbers } from './ragged.ts';

/**
 * `pairWeight` is 1 / pairs unless micro-batches share a larger number. The derivative by rejected_G is −dChosen_G.
 * @throws InvalidInputError for arrays of different lengths
 */
export function rewardModelLoss(chosen_G: Numbers, rejected_G: Numbers, pairWeight?: number): PreferenceLoss {
  return preferenceLoss({ chosen_G, rejected_G }, { beta: 1, lossType: 'sigmoid', pairWeight });
}
