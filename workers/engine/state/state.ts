/** The state of a run in memory: its components, their digests, and when these hold. */
import type { Digest } from '../../../core/ids.ts';
import type { Call, PolicyEngine, StateSource } from '../../../core/ports/policy.ts';
import type { BlockHash, WeightsFormat } from '../../../core/parameters.ts';
import { newBlockHash } from '../../../core/records/block-hash.ts';
import { actorOf, componentOf, mapComponents, someOf } from '../../../core/records/components.ts';
import type { Components } from '../../../core/records/components.ts';
import type { Publication } from '../../../core/records/publications.ts';
import type { BatchRecord } from '../../../core/records/schema.ts';
import type { UpdateOutput } from '../../../core/wire/jobs/index.ts';
import type { Stored } from '../../../log/objects/records.ts';
import { lineageDigest, runStateOf, stateDigestsOf } from '../../../log/objects/digest.ts';
import type { PartRoots, StateDigests } from '../../../log/objects/digest.ts';
import { publicationRoot, rootsOf } from '../engines/roots.ts';

/** Digests of a component's state. */
export interface ComponentDigests extends StateDigests {
  /** The updates that made it name it. Absent: its content does. */
  readonly naming?: 'lineage' | undefined;
  /** Roots of its parts; absent where nobody has hashed it. */
  readonly roots?: PartRoots | undefined;
  /**
   * Where the update that made it was applied; absent where it was not made in this process, or is named by content.
   */
  readonly incarnation?: string;
}

/** Digests of a state, and of each component. */
export interface RunDigests {
  readonly stateDigest: Digest;
  /** Digest of the policy, or of the first component when there is none. */
  readonly weightsDigest: Digest;
  readonly components: Components<ComponentDigests>;
  /** What samplers load of the policy; undefined where the state has none. */
  readonly publication?: Publication | undefined;
}

/** The state of a run, as records and manifests name it. */
export interface NamedState {
  readonly stateDigest: Digest;
  readonly components: Components<Pick<StateDigests, 'stateDigest'>>;
}

/** How the states of a run are named whose engine does not repeat its bits. */
export interface LineageNaming {
  /** Id of the numeric profile, and its engine. */
  readonly profile: string;
  readonly engine: string;
  /** Names this process. */
  readonly incarnation: string;
}

/** What has made a new state of the one before. */
export interface Making {
  readonly parent: RunDigests;
  /** Digest of the batch's record. */
  readonly batch: Digest;
  /** Components whose state has changed. */
  readonly changed: ReadonlySet<string>;
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
  readonly #naming: LineageNaming | undefined;
  /** A batch that is applied again after a load may come out otherwise. */
  #loads = 0;
  #tag: RunDigests | undefined;
  #madeBy: Applied | undefined;

  /**
   * `model`: the base that all components begin with. `format`: how the policy is published. `naming`: absent where
   * states are named by their content.
   */
  constructor(
    engines: Components<PolicyEngine>,
    model: Digest,
    blockHash: BlockHash = newBlockHash,
    format: WeightsFormat = 'F32',
    naming?: LineageNaming,
  ) {
    this.engines = engines;
    this.model = model;
    this.blockHash = blockHash;
    this.#format = format;
    this.#naming = naming;
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
    this.#loads += 1;
    for (const [name, engine] of Object.entries(this.engines)) await engine.load(sourceOf(name, engine), loading);
    return this.seal(hashing);
  }

  /**
   * Names the whole state and marks it clean. By its content, unless an update made it on an engine that does not
   * repeat its bits: then by its lineage, and only what samplers load is hashed.
   */
  async seal(call?: Call, making?: Making): Promise<RunDigests> {
    const digests: Record<string, ComponentDigests> = {};
    for (const name of Object.keys(this.engines))
      digests[name] =
        this.#naming === undefined || making === undefined
          ? await this.#content(name, call)
          : await this.#lineage(name, this.#naming, making, call);
    return this.#clean(digests, await this.#published(digests, call));
  }

  /** The state is the one that a record or a manifest names so: its content has been compared. */
  adopt(names: Components<Pick<ComponentDigests, 'stateDigest' | 'weightsDigest' | 'naming'>>): RunDigests {
    const { components, publication } = this.#tag ?? { components: {}, publication: undefined };
    const own = Object.keys(this.engines);
    const named = mapComponents(someOf(names, own), ({ stateDigest, weightsDigest, naming }, name) => {
      const { roots } = componentOf(components, name);
      return { stateDigest, weightsDigest, naming, roots };
    });
    return this.#clean(named, publication);
  }

  #clean(components: Components<ComponentDigests>, publication: Publication | undefined): RunDigests {
    const { weightsDigest } = actorOf(components);
    this.#tag = { stateDigest: runStateOf(components), weightsDigest, components, publication };
    return this.#tag;
  }

  async #content(name: string, call?: Call): Promise<ComponentDigests> {
    const engine = componentOf(this.engines, name);
    const roots = await rootsOf(engine, this.blockHash, call);
    return { ...stateDigestsOf(roots, engine.steps), roots };
  }

  /** A component that has not changed keeps its name. */
  async #lineage(
    component: string,
    naming: LineageNaming,
    { parent, batch, changed }: Making,
    call?: Call,
  ): Promise<ComponentDigests> {
    const before = componentOf(parent.components, component);
    if (!changed.has(component)) return before;
    const { stateDigest } = before;
    const { profile, engine } = naming;
    const incarnation = `${naming.incarnation}.${this.#loads}`;
    const name = lineageDigest({ parent: stateDigest, batch, component, profile, engine, incarnation });
    // Samplers verify what they load, so the policy's weights have a digest of their content.
    const made = { stateDigest: name, naming: 'lineage', incarnation } as const;
    if (component !== 'actor') return { ...made, weightsDigest: name };
    return { ...made, weightsDigest: await publicationRoot(this.engine, this.#format, this.blockHash, call) };
  }

  async #published(digests: Components<ComponentDigests>, call?: Call): Promise<Publication | undefined> {
    const [format, { actor: policy }, { actor }] = [this.#format, this.engines, digests];
    if (policy === undefined || actor === undefined) return undefined;
    if (format === 'F32' || actor.roots === undefined) return { format, digest: actor.weightsDigest };
    return { format, digest: await publicationRoot(policy, format, this.blockHash, call) };
  }
}
