/** The state of a policy: its digests, and when they hold. */
import type { Digest } from '../../core/ids.ts';
import type { PolicyEngine, StatePart, StateSource } from '../../core/ports/policy.ts';
import { blockBytes, stateDigestsOf, treeRoot } from '../../infra/store/digest.ts';
import type { StateDigests } from '../../infra/store/digest.ts';

/** Root of a part of the state, whose blocks the engine hashes. `tick`: after every few blocks. */
export async function rootOf(engine: PolicyEngine, part: StatePart, tick: () => void): Promise<Digest> {
  const blocks = await engine.blockDigests(part, blockBytes, { tick });
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

  /** Replaces the state, and hashes it. Each callback is called while its part of the work advances. */
  async load(source: StateSource, onLoad: () => void, onHash: () => void): Promise<StateDigests> {
    this.markDirty();
    await this.engine.load(source, { tick: onLoad });
    return this.seal(onHash);
  }

  /** Hashes the whole state and marks it clean. `tick`: after every few blocks. */
  async seal(tick: () => void): Promise<StateDigests> {
    const roots = {
      weights: await rootOf(this.engine, 'weights', tick),
      m: await rootOf(this.engine, 'm', tick),
      v: await rootOf(this.engine, 'v', tick),
    };
    this.#tag = stateDigestsOf(roots, this.engine.steps);
    return this.#tag;
  }
}
