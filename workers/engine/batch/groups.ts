/** Batches for losses that compare the responses to a prompt. */
import { PauseError } from '../../../core/errors.ts';
import { at } from '../../../core/at.ts';
import { needsOfLoss } from '../../../core/rl/names.ts';
import type { PolicyLossName } from '../../../core/rl/names.ts';
import { rowsByGroup } from '../../../core/rl/advantages/groups.ts';
import type { AlgorithmSettings } from '../../../core/wire/jobs/index.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { comparesGroups } from '../losses/prime.ts';
import type { Sample } from '../samples/samples.ts';

/** Does a loss read all responses to a prompt at once? */
export const readsGroups = ({ loss, rewardModel }: AlgorithmSettings): boolean =>
  (loss.kind === 'policy' && needsOfLoss(loss.lossMode as PolicyLossName).includes('groups')) ||
  (rewardModel !== undefined && comparesGroups(rewardModel.loss));

/** Which samples belong together, when the update reads that. */
export const groupsOf = (algorithm: AlgorithmSettings, samples: readonly Sample[]): Pick<BatchTensors, 'groups_S'> =>
  readsGroups(algorithm) || algorithm.rewardModel !== undefined
    ? { groups_S: Int32Array.from(samples, ({ draw }) => draw) }
    : {};

/**
 * The samples of an optimiser step as groups that are not divided. Throws PauseError for one with more tokens
 * than a micro-batch may have.
 */
export function wholeGroups(
  samples: readonly Sample[],
  members: readonly number[],
  limit: number,
  tokensOf: (unit: readonly number[]) => number,
): number[][] {
  const groups = [...rowsByGroup(members.map((b) => at(samples, b).draw)).values()];
  const units = groups.map((rows) => rows.map((i) => at(members, i)));
  for (const unit of units) {
    if (tokensOf(unit) <= limit) continue;
    throw new PauseError(
      'GroupTooLarge',
      `the ${unit.length} responses to the prompt of draw ${at(samples, at(unit, 0)).draw} have ${tokensOf(unit)} tokens; the loss reads them in one micro-batch, which may have ${limit}`,
      {
        hint: 'raise the limit: petrel resume <run> actor.ppo_max_token_len_per_gpu=<tokens for each GPU>; or lower rollout.n or data.max_response_length',
      },
    );
  }
  return units;
}
