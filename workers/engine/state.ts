/** The state of a policy: its digests, and when they hold. */
import type { Digest } from '../../core/ids.ts';
import type { Call, PolicyEngine, StatePart, StateSource } from '../../core/ports/policy.ts';
import { blockBytes, stateDigestsOf, treeRoot } from '../../infra/store/digest.ts';
import type { StateDigests } from '../../infra/store/digest.ts';

/** Root of a part of the state, whose blocks the engine hashes. */
export async function rootOf(engine: PolicyEngine, part: StatePart, call?: Call): Promise<Digest> {
  const blocks = await engine.blockDigests(part, blockBytes, call);
  return treeRoot(engine.elements * Float32Array.BYTES_PER_ELEMENT, blocks);
}

/**
 * The policy in an engine's memory, with a tag that names its state. It is dirty from before the first in-place write
 * until the new digest is known, and a dirty state is never trusted.
 */
export class PolicyState {
  readonly engine: PolicyEngine;
  readonly model: Digest;
  #tag: StateDigests | undefined;

  constructor(engine: PolicyEngine, model: Digest) {
    this.engine = engine;
    this.model = model;
  }

  /** The digests of this state; undefined while dirty. */
  get tag(): StateDigests | undefined {
    return this.#tag;
  }

  markDirty(): void {
    this.#tag = undefined;
  }

  /** Replaces the state, and hashes it. */
  async load(source: StateSource, loading: Call, hashing: Call): Promise<StateDigests> {
    this.markDirty();
    await this.engine.load(source, loading);
    return this.seal(hashing);
  }

  /** Hashes the whole state and marks it clean. */
  async seal(call?: Call): Promise<StateDigests> {
    const roots = {
      weights: await rootOf(this.engine, 'weights', call),
      m: await rootOf(this.engine, 'm', call),
      v: await rootOf(this.engine, 'v', call),
    };
    this.#tag = stateDigestsOf(roots, this.engine.steps);
    return this.#tag;
  }
}
