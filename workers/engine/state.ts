/** The state of a run in memory: its components, their digests, and when these hold. */
import type { Digest } from '../../core/ids.ts';
import type { BlockHash, Call, PolicyEngine, StatePart, StateSource, WeightsFormat } from '../../core/ports/policy.ts';
import { newBlockHash } from '../../core/records/block-hash.ts';
import { actorOf, mapComponents, someOf } from '../../core/records/components.ts';
import type { Components } from '../../core/records/components.ts';
import { publishedBytes } from '../../core/records/publications.ts';
import type { Publication } from '../../core/records/publications.ts';
import type { BatchRecord } from '../../core/records/schema.ts';
import type { UpdateOutput } from '../../core/wire/jobs.ts';
import type { Stored } from '../../infra/store/records.ts';
import { blockBytes, runStateOf, stateDigestsOf, treeRoot } from '../../infra/store/digest.ts';
import type { StateDigests } from '../../infra/store/digest.ts';

/** Root of a part of the state, whose blocks the engine hashes. */
export async function rootOf(engine: PolicyEngine, part: StatePart, hash: BlockHash, call?: Call): Promise<Digest> {
  const blocks = await engine.blockDigests(part, blockBytes, hash, call);
  return treeRoot(engine.elements * Float32Array.BYTES_PER_ELEMENT, blocks, hash);
}

/** Digest of a publication of the engine's weights. `hash`: of the blocks of fp32 values. */
export async function publicationRoot(
  engine: PolicyEngine,
  format: WeightsFormat,
  hash: BlockHash,
  call?: Call,
): Promise<Digest> {
  if (format === 'F32') return rootOf(engine, 'weights', hash, call);
  return treeRoot(publishedBytes(engine.parameters, format), await engine.publishedDigests(blockBytes, call), 'blake3');
}

/** Digests of a state, and of each component. */
export interface RunDigests {
  readonly stateDigest: Digest;
  /** Digest of the policy, or of the first component when there is none. */
  readonly weightsDigest: Digest;
  readonly components: Components<StateDigests>;
  /** What samplers load of the policy; undefined where the state has none. */
  readonly publication?: Publication | undefined;
}

/** The state of a run, as records and manifests name it. */
export interface NamedState {
  readonly stateDigest: Digest;
  readonly components: Components<Pick<StateDigests, 'stateDigest'>>;
}

/** An update that was applied. */
export interface Applied {
  /** Digest of the batch's record. */
  readonly batch: Digest;
  /** Digest of the batch which it repeats, else its own. */
  readonly original: Digest;
  /** Updates in a row before it that took no step. */
  readonly badSteps: number;
  /**
   * The state that it was applied to: not the one that the job named where a standby has other bits than its leader.
   */
  readonly from: Digest;
  readonly output: UpdateOutput;
  /** Key of the job's result; absent for a replay. */
  readonly result?: string;
  /** The `result` of the update before, if that one made the state `from` in this process. */
  readonly resultBefore?: string;
}

/** What an applied update keeps of its batch. */
export const namesOf = ({ digest, record }: Stored<BatchRecord>): Pick<Applied, 'batch' | 'original' | 'badSteps'> => ({
  batch: digest,
  original: record.adopted?.record ?? digest,
  badSteps: record.before.badSteps,
});

/**
 * The models of a run in their engines' memory, or those that this trainer trains, with a tag that names their state.
 * It is dirty from before the first in-place write until the new digest is known, and a dirty state is never trusted.
 */
export class RunState {
  readonly engines: Components<PolicyEngine>;
  readonly model: Digest;
  /** Hash of the blocks in its digests. */
  readonly blockHash: BlockHash;
  readonly #format: WeightsFormat;
  #tag: RunDigests | undefined;
  #madeBy: Applied | undefined;

  /** `model`: the base that all components begin with. `format`: how the policy is published. */
  constructor(
    engines: Components<PolicyEngine>,
    model: Digest,
    blockHash: BlockHash = newBlockHash,
    format: WeightsFormat = 'F32',
  ) {
    this.engines = engines;
    this.model = model;
    this.blockHash = blockHash;
    this.#format = format;
  }

  /** The policy's engine. */
  get engine(): PolicyEngine {
    return actorOf(this.engines);
  }

  /** What a record or a manifest says of this state's components. It may have more of them. */
  digestIn({ stateDigest, components }: NamedState): Digest {
    const names = Object.keys(this.engines);
    const hasAll = Object.keys(components).every((name) => names.includes(name));
    return hasAll ? stateDigest : runStateOf(someOf(components, names));
  }

  /** The digests of this state; undefined while dirty. */
  get tag(): RunDigests | undefined {
    return this.#tag;
  }

  markDirty(): void {
    this.#tag = undefined;
    this.#madeBy = undefined;
  }

  /** The update that made this state. */
  get madeBy(): Applied | undefined {
    return this.#madeBy;
  }

  /** The state is clean, and this update made it. */
  noteUpdate(applied: Applied): void {
    this.#madeBy = applied;
  }

  /** Replaces the state of every component, and hashes it. */
  async load(
    sourceOf: (component: string, engine: PolicyEngine) => StateSource,
    loading: Call,
    hashing: Call,
  ): Promise<RunDigests> {
    this.markDirty();
    for (const [name, engine] of Object.entries(this.engines)) await engine.load(sourceOf(name, engine), loading);
    return this.seal(hashing);
  }

  /** Hashes the whole state and marks it clean. */
  async seal(call?: Call): Promise<RunDigests> {
    const digests: Record<string, StateDigests> = {};
    for (const [name, engine] of Object.entries(this.engines)) {
      const roots = {
        weights: await rootOf(engine, 'weights', this.blockHash, call),
        m: await rootOf(engine, 'm', this.blockHash, call),
        v: await rootOf(engine, 'v', this.blockHash, call),
      };
      digests[name] = stateDigestsOf(roots, engine.steps);
    }
    const { weightsDigest } = actorOf(digests);
    const components = mapComponents(digests, (one) => one);
    const publication = await this.#published(digests, call);
    this.#tag = { stateDigest: runStateOf(digests), weightsDigest, components, publication };
    return this.#tag;
  }

  async #published(digests: Components<StateDigests>, call?: Call): Promise<Publication | undefined> {
    const [format, { actor: policy }, { actor }] = [this.#format, this.engines, digests];
    if (policy === undefined || actor === undefined) return undefined;
    if (format === 'F32') return { format, digest: actor.weightsDigest };
    return { format, digest: await publicationRoot(policy, format, this.blockHash, call) };
  }
}
