/** The sampler of the native engine: it reads the weights of a model of this process. */
import type {
  DecodedTokens,
  GenerateRequest,
  NamedWeights,
  OwningSampler,
  Sampler,
  SamplerRoom,
} from '../../../../core/ports/sampler.ts';
import type { Call, StateSource } from '../../../../core/ports/policy.ts';
import type { EngineParameter, WeightsFormat } from '../../../../core/parameters.ts';
import type { NativeGenerator } from '../../../../native/index.ts';
import { publicationRoot } from '../roots.ts';
import { SteppedStreams } from '../stepped-streams.ts';
import type { Stepped } from '../stepped-streams.ts';
import { paced } from './paced-sampler.ts';
import { never } from './policy.ts';
import type { NativePolicy } from './policy.ts';

/** Makes the generator of a model that has room for such samples. */
export type MakeGenerator = (policy: NativePolicy, room: SamplerRoom) => NativeGenerator;

export class NativeSampler implements Sampler {
  readonly exited = never;
  readonly policy: NativePolicy;
  readonly #make: MakeGenerator;
  #generator: NativeGenerator | undefined;
  #streams: SteppedStreams | undefined;

  constructor(policy: NativePolicy, make: MakeGenerator) {
    this.policy = policy;
    this.#make = make;
  }

  async makeRoom(room: SamplerRoom): Promise<void> {
    await this.#end();
    this.#generator = this.#make(this.policy, room);
    this.#streams = new SteppedStreams(paced(this.#generator as Stepped));
  }

  generate(requests: readonly GenerateRequest[]): AsyncIterable<DecodedTokens> {
    if (this.#streams === undefined) throw new Error('makeRoom is called before generate');
    return this.#streams.generate(requests);
  }

  async abort(key: number): Promise<void> {
    await this.#streams?.abort(key);
  }

  async pause(): Promise<void> {
    await this.#streams?.end();
  }

  async resume(): Promise<void> {}

  async close(): Promise<void> {
    await this.#end();
  }

  async #end(): Promise<void> {
    await this.#streams?.end();
    this.#generator?.close();
    this.#streams = undefined;
    this.#generator = undefined;
  }
}

/** It loads weights into a model of its own. */
export class OwningNativeSampler extends NativeSampler implements OwningSampler {
  get parameters(): readonly EngineParameter[] {
    return this.policy.parameters;
  }

  async use(source: StateSource, { format, hash }: NamedWeights, call?: Call): Promise<string> {
    await this.pause();
    await this.policy.load(source, call);
    return publicationRoot(this.policy, format, hash, call);
  }

  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    return this.policy.readPublished(format, start, into);
  }

  override async close(): Promise<void> {
    await super.close();
    await this.policy.close();
  }
}
