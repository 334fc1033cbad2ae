/** The digests of a state, hashed on one thread by Node: the workers have their engine's threads hash the blocks. */
import { stateDigestsOf, treeDigest } from '../infra/store/digest.ts';
import type { StateDigests, StateParts } from '../infra/store/digest.ts';

export function stateDigests({ weights, m, v, steps }: StateParts): StateDigests {
  return stateDigestsOf({ weights: treeDigest(weights), m: treeDigest(m), v: treeDigest(v) }, steps);
}
