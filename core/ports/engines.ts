/** The port of an engine: what trains, scores and samples models. One line of a registry makes it known. */
import type { NumericProfile } from '../records/schema.ts';
import type { SamplingServer } from '../sampling-server.ts';
import type { EngineFacts } from '../wire/engine-facts.ts';
import type { EngineOptions, HeadKind, PolicyEngine } from './policy.ts';
import type { OwningSampler, Sampler } from './sampler.ts';

/** A model as a folder: the engine reads from it what it needs to know. */
export interface ModelRef {
  /** Folder with the model's config.json. Weights may lie beside it, or come by `load`. */
  readonly folder: string;
  /** What the model has on top; where the folder has another head, the model's own starts at 0. */
  readonly head: HeadKind;
}

export type PolicyOptions = EngineOptions & {
  /** false leaves out gradients and moments (a reference model). */
  readonly trainable: boolean;
};

export interface Engines {
  /** Name of the engine in a recipe: `trainer.engine`. */
  readonly name: string;
  /**
   * What a sampler of it reads of a model's folder before the weights come. Absent: `opening`, all but a whole model's
   * weights.
   */
  readonly reads?: 'opening' | 'all';
  facts(): EngineFacts;
  /**
   * Names everything that decides the bits of a result in this process, apart from its inputs. Log-probs of one
   * arithmetic are useless in another.
   */
  arithmetic(profile: Pick<NumericProfile, 'compute' | 'deterministic'>): string;
  /**
   * A model whose weights are undefined until `load`. Throws UnfitError `TooLittleMemory` when it does not fit beside
   * the others of this engine. Absent: the engine only samples.
   */
  open?(model: ModelRef, options: PolicyOptions): Promise<PolicyEngine>;
  /**
   * A sampler with weights of its own, undefined until `use`. `server`: the one that samples, for the engine that asks
   * servers. Throws UnfitError `TooLittleMemory`. Absent: the engine only trains and scores.
   */
  sampler?(model: ModelRef, options: EngineOptions, server?: SamplingServer): Promise<OwningSampler>;
  /** A sampler that reads the weights of a model of this engine in place. Absent: there is none. */
  samplerOf?(policy: PolicyEngine): Promise<Sampler>;
}

export type TrainingEngine = Engines & Required<Pick<Engines, 'open'>>;
export type SamplingEngine = Engines & Required<Pick<Engines, 'sampler'>>;
