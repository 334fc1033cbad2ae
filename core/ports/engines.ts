/** The port that creates engines. */
import type { DecoderSpec } from '../decoder-spec.ts';
import type { EngineOptions, PolicyEngine } from './policy.ts';
import type { Sampler } from './sampler.ts';

/** The sizes that a sampler must allow. It limits its memory independently of them. */
export interface SamplerRoom {
  /** Samples that are decoded together. */
  readonly maxSeqs: number;
  /** Longest prompt and response, in tokens. */
  readonly maxModelLen: number;
}

export interface Engines {
  /** A model with all weights 0. `trainable: false` leaves out gradients and moments (a reference model). */
  policy(spec: DecoderSpec, options: EngineOptions & { readonly trainable: boolean }): Promise<PolicyEngine>;
  /** A sampler that reads the weights of one of these engines in place. */
  sampler(policy: PolicyEngine, room: SamplerRoom): Promise<Sampler>;
}
