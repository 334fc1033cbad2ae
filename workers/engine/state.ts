/** The state of a policy: its digests, and when they hold. */
import type { TrainerEngine } from '../../core/ports.ts';
import type { Digest } from '../../core/ids.ts';
import { blockBytes, stateDigestsOf, treeRoot } from '../../infra/store/digest.ts';
import type { StateDigests } from '../../infra/store/digest.ts';

type StatePart = 'weights' | 'm' | 'v';

/** Root of a part of the state, whose blocks the engine's threads hash. `onProgress`: after every few blocks. */
export function rootOf(trainer: TrainerEngine, part: StatePart, onProgress: () => void): Digest {
  return treeRoot(trainer[part].byteLength, trainer.blockDigests(part, blockBytes, onProgress));
}

/**
 * The policy in an engine's memory, with a tag that names its state. It is dirty from before the first in-place write
 * until the new digest is known, and a dirty state is never trusted.
 */
export class PolicyState {
  readonly trainer: TrainerEngine;
  readonly model: Digest;
  #tag: StateDigests | undefined;

  constructor(trainer: TrainerEngine, model: Digest) {
    this.trainer = trainer;
    this.model = model;
  }

  /** The digests of this state; undefined while dirty. */
  get tag(): StateDigests | undefined {
    return this.#tag;
  }

  markDirty(): void {
    this.#tag = undefined;
  }

  /** Hashes the whole state and marks it clean. `onProgress`: after every few blocks. */
  seal(onProgress: () => void): StateDigests {
    const root = (part: StatePart) => rootOf(this.trainer, part, onProgress);
    this.#tag = stateDigestsOf({ weights: root('weights'), m: root('m'), v: root('v') }, this.trainer.steps);
    return this.#tag;
  }

  /** Restores the base: given weights, no moments, no steps. */
  reset(): void {
    this.markDirty();
    this.trainer.m.fill(0);
    this.trainer.v.fill(0);
    this.trainer.zeroGrads();
    this.trainer.steps = 0;
  }
}
