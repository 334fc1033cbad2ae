/**
 * Converts between scores per sample and rewards per token. A score stands on one token, and is the sum of its row
 * again. verl sums the whole row for estimators of outcomes, so a reward at mask 0 counts there.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import { float64, valueAt } from '../float64.ts';
import { broadcastRows, requireTokens, rowCount, tokenCount, type Numbers, type RaggedRows } from '../ragged.ts';
import type { Advantages } from './types.ts';

/**
 * Outcome score of each sample: the sum of its token rewards. @throws InvalidInputError for another number of tokens.
 */
export function outcomeScores(rewards_T: Numbers, rows: RaggedRows): Float64Array {
  requireTokens('rewards', rewards_T, tokenCount(rows));
  const rewards = float64(rewards_T);
  const scores_S = new Float64Array(rowCount(rows));
  for (let s = 0; s < scores_S.length; s++) {
    const end = at(rows.offsets_S1, s + 1);
    let score = 0;
    for (let t = at(rows.offsets_S1, s); t < end; t++) score += valueAt(rewards, t);
    scores_S[s] = score;
  }
  return scores_S;
}

/**
 * Each score on the last token with mask 1 of its row, or on the last token if there is none. verl takes the last token
 * even if it is an observation, where `gae` and others ignore it.
 *
 * @throws InvalidInputError for a sample with a score and no token.
 */
export function rewardsAtLastToken(scores_S: Numbers, rows: RaggedRows): Float64Array {
  const rewards_T = new Float64Array(tokenCount(rows));
  for (let s = 0; s < rowCount(rows); s++) {
    const score = at(scores_S, s);
    const [start, end] = [at(rows.offsets_S1, s), at(rows.offsets_S1, s + 1)];
    const last = lastValidToken(rows, s);
    if (start < end) rewards_T[last === -1 ? end - 1 : last] = score;
    else if (score !== 0) {
      throw new InvalidInputError(`sample ${s} has the score ${score} and no token`, {
        hint: 'leave samples without a response out of the batch',
      });
    }
  }
  return rewards_T;
}

/** Index over T of the last token with mask 1 of a row; −1 if it has none. */
export function lastValidToken({ offsets_S1, mask_T }: RaggedRows, s: number): number {
  for (let t = at(offsets_S1, s + 1) - 1; t >= at(offsets_S1, s); t--) if (at(mask_T, t) !== 0) return t;
  return -1;
}

/** The advantage of a sample on all its tokens with mask 1; the returns are the same array. */
export function outcomeAdvantages(advantages_S: Numbers, rows: RaggedRows): Advantages {
  const advantages_T = broadcastRows(advantages_S, rows);
  return { advantages_T, returns_T: advantages_T };
}
