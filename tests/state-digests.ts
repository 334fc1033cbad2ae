/** The digests of a state, hashed on one thread by Node: the workers have their engine's threads hash the blocks. */
import { stateDigestsOf, treeDigest } from '../log/objects/digest.ts';
import type { StateDigests } from '../log/objects/digest.ts';
import type { Snapshot } from '../workers/engine/state/checkpoint.ts';
import { partsOf } from '../core/records/state-parts.ts';

/** A state of all weights and the moments of AdamW. */
export interface StateParts {
  readonly weights: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  readonly steps: number;
}

const rootsOf = ({ weights, m, v }: StateParts) => ({
  weights: treeDigest(weights),
  m: treeDigest(m),
  v: treeDigest(v),
});

export const stateDigests = (state: StateParts): StateDigests => stateDigestsOf(rootsOf(state), state.steps);

/** The state as it is saved. */
export function snapshotOf(state: StateParts, parameters: Snapshot['parameters']): Snapshot {
  const values = [state.weights, state.m, state.v];
  const parts = partsOf(state.weights.length).map((part, i) => ({
    ...part,
    read: async (start: number, end: number) => (values[i] ?? state.weights).subarray(start, end),
  }));
  const { steps } = state;
  return { parts, steps, parameters, digests: stateDigests(state), roots: rootsOf(state), blockHash: 'sha256' };
}
