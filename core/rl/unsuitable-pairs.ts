/**
 * Advantage estimators and policy losses that make no sense together, each pair with the reason. A recipe that names
 * such a pair is refused. A pair that is not listed here runs in tests/integration/pairs.test.ts.
 */
import { needsOfEstimator } from './names.ts';
import type { AdvantageName, PolicyLossName } from './names.ts';

interface UnsuitablePair {
  readonly loss: PolicyLossName;
  readonly unsuitable: (estimator: AdvantageName) => boolean;
  readonly because: string;
}

const comparesGroups = (estimator: AdvantageName): boolean => needsOfEstimator(estimator).includes('groupsOfTwo');

const UNSUITABLE: readonly UnsuitablePair[] = [
  {
    loss: 'gvpo',
    unsuitable: (estimator) => !comparesGroups(estimator),
    because: 'gvpo compares log-ratios within a group, so the advantages must be relative to the group, too',
  },
  {
    loss: 'gvpo',
    unsuitable: (estimator) => estimator === 'grpo_passk' || estimator === 'prime',
    because: 'gvpo needs advantages that add up to 0 in each group, and those of this estimator do not',
  },
  {
    loss: 'bypass_mode',
    unsuitable: (estimator) => needsOfEstimator(estimator).includes('sumPiSquared'),
    because:
      'bypass_mode takes the log-probs of the rollout, and this estimator reads the old policy’s probabilities of all tokens',
  },
  {
    loss: 'online_dpo',
    unsuitable: (estimator) => needsOfEstimator(estimator).some((need) => need !== 'groupsOfTwo'),
    because:
      'online_dpo compares scores and reads no advantages, so what this estimator needs would be made for nothing',
  },
];

/** Why the two cannot be used together; undefined when they can. */
export const whyUnsuitable = (estimator: AdvantageName, loss: PolicyLossName): string | undefined =>
  UNSUITABLE.find((pair) => pair.loss === loss && pair.unsuitable(estimator))?.because;
