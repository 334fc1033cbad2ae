/**
 * Where a sample's reward stands among its tokens: on the last one, whoever wrote it (all managers of verl:
 * `reward_tensor[i, valid_length - 1] = reward`).
 *
 * In verl a response without tokens puts its reward on the last column of the padded matrix. Ragged rows have no such
 * place, so they refuse it.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import { rowCount, tokenCount, type Numbers, type RaggedRows } from '../ragged.ts';

/** Reward of each token. @throws InvalidInputError for a row without tokens, or another number of rewards than rows. */
export function placeRewards(rewards_S: Numbers, rows: RaggedRows): Float64Array {
  if (rewards_S.length !== rowCount(rows))
    throw new InvalidInputError(`there are ${rewards_S.length} rewards for ${rowCount(rows)} responses`);
  const rewards_T = new Float64Array(tokenCount(rows));
  for (let s = 0; s < rewards_S.length; s++) {
    const end = at(rows.offsets_S1, s + 1);
    if (end === at(rows.offsets_S1, s))
      throw new InvalidInputError(`response ${s} has no tokens, so its reward has no place`);
    rewards_T[end - 1] = at(rewards_S, s);
  }
  return rewards_T;
}
