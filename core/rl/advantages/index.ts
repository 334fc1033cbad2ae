/** Registry of advantage estimators, key `algorithm.adv_estimator`. An estimator is one file and one line here. */
import { InvalidInputError } from '../../errors.ts';
import { grpo, grpoVectorized } from './grpo.ts';
import type { AdvantageEstimator } from './types.ts';

export type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';
export { rowsByGroup } from './groups.ts';

const ESTIMATORS: readonly AdvantageEstimator[] = [grpo, grpoVectorized];

export const ADVANTAGE_ESTIMATORS: readonly string[] = ESTIMATORS.map((estimator) => estimator.name);

/** @throws InvalidInputError with the known estimators. */
export function advantageEstimator(name: string): AdvantageEstimator {
  const found = ESTIMATORS.find((estimator) => estimator.name === name);
  if (found === undefined) {
    throw new InvalidInputError(`unknown adv_estimator "${name}"`, {
      hint: `one of ${ADVANTAGE_ESTIMATORS.join(', ')}`,
    });
  }
  return found;
}
