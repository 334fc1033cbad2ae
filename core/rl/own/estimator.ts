/**
 * Calls an advantage estimator of the user's own on a batch, with copies of the numbers, and checks what it returns. It
 * runs in the module's thread.
 */
import type { AdvantageBatch, AdvantageConfig, Advantages } from '../advantages/types.ts';
import { outcomeScores } from '../advantages/outcomes.ts';
import { InvalidInputError } from '../../errors.ts';
import type { OwnEstimatorNeed } from '../names.ts';
import { broadcastRows, rowCount, tokenCount } from '../ragged.ts';
import { checkedNumbers, checkedObject, ownRows, requireFinite } from './results.ts';
import type { OwnAdvantageEstimator, OwnEstimatorBatch } from './types.ts';

/** A batch with what the module asked for, as data that can be sent to a thread. */
export interface OwnEstimatorCall {
  readonly batch: Pick<AdvantageBatch, 'rows' | 'rewards_T' | 'values_T'> & { readonly groups_S: Int32Array };
  readonly config: Pick<AdvantageConfig, 'gamma' | 'lam' | 'normAdvByStdInGrpo'>;
}

/** @throws InvalidInputError when the batch lacks what the module asked for: an error of the caller. */
export function ownEstimatorCall(
  needs: readonly OwnEstimatorNeed[],
  { rows, rewards_T, groups_S, values_T }: AdvantageBatch,
  { gamma, lam, normAdvByStdInGrpo }: AdvantageConfig,
): OwnEstimatorCall {
  if (needs.includes('values') && values_T === undefined)
    throw new InvalidInputError('the estimator needs values, and the batch has none');
  return {
    batch: {
      rows: { offsets_S1: rows.offsets_S1, mask_T: rows.mask_T },
      rewards_T,
      groups_S: groupNumbers(groups_S),
      ...(needs.includes('values') && { values_T }),
    },
    config: { gamma, lam, normAdvByStdInGrpo },
  };
}

/** @throws InvalidInputError that says what is wrong with the result; whatever the module throws. */
export function ownAdvantages(estimator: OwnAdvantageEstimator, { batch, config }: OwnEstimatorCall): Advantages {
  const { rows } = batch;
  const given: OwnEstimatorBatch = {
    rows: ownRows(rows),
    scores_S: outcomeScores(batch.rewards_T, rows),
    rewards_T: new Float64Array(batch.rewards_T),
    groups_S: new Int32Array(batch.groups_S),
    ...(batch.values_T && { values_T: new Float64Array(batch.values_T) }),
  };
  const { gamma = 1, lam = 1, normAdvByStdInGrpo = true } = config;
  const result = checkedObject(estimator.compute(given, { gamma, lam, normAdvByStdInGrpo }));
  if ('advantages_S' in result) {
    const advantages_S = checkedNumbers('advantages_S', result.advantages_S, rowCount(rows));
    requireFinite('advantages_S', advantages_S);
    const advantages_T = broadcastRows(advantages_S, rows);
    return { advantages_T, returns_T: advantages_T };
  }
  const advantages_T = checkedNumbers('advantages_T', result.advantages_T, tokenCount(rows));
  const returns_T =
    result.returns_T === undefined ? advantages_T : checkedNumbers('returns_T', result.returns_T, tokenCount(rows));
  for (const values_T of [advantages_T, returns_T])
    for (let t = 0; t < values_T.length; t++) if (rows.mask_T[t] === 0) values_T[t] = 0;
  requireFinite('advantages_T', advantages_T);
  requireFinite('returns_T', returns_T);
  return { advantages_T, returns_T };
}

/** 0, 1, 2 … in order of first appearance. */
function groupNumbers(groups_S: ArrayLike<unknown>): Int32Array {
  const numbers = new Map<unknown, number>();
  return Int32Array.from({ length: groups_S.length }, (_, s) => {
    const key = groups_S[s];
    const known = numbers.get(key) ?? numbers.size;
    numbers.set(key, known);
    return known;
  });
}
