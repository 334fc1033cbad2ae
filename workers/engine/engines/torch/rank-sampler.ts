/** A sampler in a Python process of its own, which makes a token for every live sample at a time: `hf`, `vllm`. */
import type { PolicyOptions, ModelRef } from '../../../../core/ports/engines.ts';
import type { Call, StateSource } from '../../../../core/ports/policy.ts';
import type { DecodedTokens, GenerateRequest, NamedWeights, SamplerRoom } from '../../../../core/ports/sampler.ts';
import type { EngineParameter, WeightsFormat } from '../../../../core/parameters.ts';
import { SteppedStreams } from '../stepped-streams.ts';
import type { Follower } from '../replicas.ts';
import { FileWeights } from './file-weights.ts';
import type { RankGroup } from './rank-group.ts';
import { RankState } from './rank-state.ts';
import type { NamedShape } from './rank-state.ts';
import { stateWeights } from './rank-weights.ts';
import type { RankWeights } from './rank-weights.ts';

/** Arrays of equal length, one entry for each token. */
interface Stepped {
  readonly keys: readonly number[];
  readonly tokens: readonly number[];
  readonly logProbs: readonly number[];
  readonly samplingLogProbs: readonly number[];
  readonly finish: readonly number[];
}

interface Opened {
  readonly parameters: readonly NamedShape[];
  readonly weightsFile?: string;
}

export class RankSampler implements Follower {
  readonly exited: Promise<void>;
  readonly #group: RankGroup;
  readonly #weights: RankWeights;
  /** The file in memory that has its weights. Absent: no other process can have it. */
  readonly weightsFile: string | undefined;
  readonly #streams: SteppedStreams;

  private constructor(group: RankGroup, weights: RankWeights, weightsFile: string | undefined) {
    this.#group = group;
    this.#weights = weights;
    this.weightsFile = weightsFile;
    this.exited = group.exited;
    this.#streams = new SteppedStreams({
      submit: (request) => group.exclusive('submit', requestJson(request)),
      step: async () => decoded(await group.exclusive<Stepped>('step', {})),
      abort: (key) => group.exclusive('abort', { key }),
      reset: () => group.exclusive('reset', {}),
    });
  }

  /**
   * Takes the group over: it ends with the sampler. `follows`: the file in memory of another sampler on this machine,
   * whose weights this one has.
   */
  static async open(
    group: RankGroup,
    model: ModelRef,
    { compute, threads, tensorParallel }: PolicyOptions,
    follows?: string,
  ): Promise<RankSampler> {
    try {
      const args = {
        ...model,
        ...{ compute, trainable: false, samples: true },
        ...(tensorParallel !== undefined && { tensorParallel }),
        ...(follows !== undefined && { follows }),
      };
      const { parameters, weightsFile } = await group.exclusive<Opened>('open', args);
      const weights =
        weightsFile === undefined
          ? stateWeights(new RankState(group, parameters, { compute, threads, trainable: false }))
          : new FileWeights(group, parameters, { compute, threads }, weightsFile);
      return new RankSampler(group, weights, weightsFile);
    } catch (error) {
      await group.close();
      throw error;
    }
  }

  get parameters(): readonly EngineParameter[] {
    return this.#weights.parameters;
  }

  async use(source: StateSource, { format, hash }: NamedWeights, call?: Call): Promise<string> {
    await this.#streams.end();
    return this.#weights.use(source, format, hash, call);
  }

  async follow(call?: Call): Promise<void> {
    await this.#streams.end();
    await this.#group.exclusive('loaded', {}, call);
  }

  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    return this.#weights.readPublished(format, start, into);
  }

  async makeRoom(room: SamplerRoom): Promise<void> {
    await this.#streams.end();
    await this.#group.exclusive('room', room);
  }

  generate(requests: readonly GenerateRequest[]): AsyncIterable<DecodedTokens> {
    return this.#streams.generate(requests);
  }

  abort(key: number): Promise<void> {
    return this.#streams.abort(key);
  }

  pause(): Promise<void> {
    return this.#streams.end();
  }

  async resume(): Promise<void> {}

  async close(): Promise<void> {
    await this.#group.close();
    await this.#weights.close();
  }
}

const requestJson = ({ prompt, samples, stopTokens, ...rest }: GenerateRequest) => ({
  ...rest,
  prompt: [...prompt],
  stopTokens: [...stopTokens],
  samples: samples.map(({ prefix = [], ...sample }) => ({ ...sample, prefix: [...prefix] })),
});

const decoded = ({ keys, tokens, logProbs, samplingLogProbs, finish }: Stepped): DecodedTokens => ({
  keys: Int32Array.from(keys),
  tokens: Int32Array.from(tokens),
  logProbs: Float32Array.from(logProbs),
  samplingLogProbs: Float32Array.from(samplingLogProbs),
  finish: Uint8Array.from(finish),
});
