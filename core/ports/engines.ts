/** The port that creates engines. */
import type { DecoderSpec } from '../decoder-spec.ts';
import type { EngineOptions, PolicyEngine } from './policy.ts';
import type { Sampler } from './sampler.ts';

/** The sizes that a sampler must allow. */
export interface SamplerRoom {
  /** Samples that are decoded together. */
  readonly maxSeqs: number;
  /** Longest prompt and response, in tokens. */
  readonly maxModelLen: number;
}

export type PolicyOptions = EngineOptions & {
  /** false leaves out gradients and moments (a reference model). */
  readonly trainable: boolean;
};

export interface Engines {
  /** Bytes of a model, known before it is made: weights, their copies, gradients and moments. */
  modelBytes(spec: DecoderSpec, options: PolicyOptions): number;
  /** Bytes of keys and values with which no sample waits for another one to end. */
  cacheBytes(spec: DecoderSpec, options: Pick<EngineOptions, 'compute'>, room: SamplerRoom): number;
  /** A model with all weights 0. */
  policy(spec: DecoderSpec, options: PolicyOptions): Promise<PolicyEngine>;
  /**
   * A sampler that reads the weights of one of these engines in place. `cacheBytes`: its keys and values take at most
   * that, or one sequence.
   */
  sampler(policy: PolicyEngine, room: SamplerRoom, cacheBytes: number): Promise<Sampler>;
}
