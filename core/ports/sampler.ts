/** The port of an engine that samples responses. */
import type { SamplingSettings } from '../sampling-settings.ts';
import type { TokenColumns } from '../token-columns.ts';
import type { Call, StateSource } from './policy.ts';
import type { BlockHash, EngineParameter, WeightsFormat } from '../parameters.ts';

/** Samples of one prompt. The prompt is prefilled once and its keys and values are shared. */
export interface GenerateRequest {
  readonly prompt: Int32Array;
  readonly samples: readonly GenerateSample[];
  readonly sampling: SamplingSettings;
  readonly maxNewTokens: number;
  /** Generation ends after one of these; the stop token is part of the response. */
  readonly stopTokens: Int32Array;
}

export interface GenerateSample {
  /** The caller's id of the sample, unique among live ones; a positive 31-bit integer. */
  readonly key: number;
  /**
   * Counter-based random bits: Philox4x32-10 with key = seed, counter = (draw, sample, turn, position in response). An
   * engine whose facts say `seeded` draws bits of its own instead.
   */
  readonly random: {
    readonly seed: readonly [number, number];
    readonly draw: number;
    readonly sample: number;
    readonly turn: number;
  };
  /** Tokens already generated, from which the sample continues (resume). */
  readonly prefix?: Int32Array;
}

/** 0 = not finished, 1 = stop token, 2 = maxNewTokens reached. */
export type FinishCode = 0 | 1 | 2;

/** Tokens that were made together: arrays of equal length, one entry per token. */
export interface DecodedTokens {
  readonly keys: Int32Array;
  readonly tokens: Int32Array;
  /**
   * Log-prob under softmax(logits / temperature) without filters; training recomputes the same. Greedy: temperature 1.
   */
  readonly logProbs: Float32Array;
  /**
   * Log-prob under the distribution sampled from (after top-k, top-p, min-p, penalties). Greedy: 0. Absent: the engine
   * does not give it.
   */
  readonly samplingLogProbs?: Float32Array;
  /** Other numbers of each token, by name. */
  readonly columns?: TokenColumns;
  readonly finish: Uint8Array;
}

/** The sizes that a sampler must allow. */
export interface SamplerRoom {
  /** Samples that are decoded together. */
  readonly maxSeqs: number;
  /** Longest prompt and response, in tokens. */
  readonly maxModelLen: number;
}

/**
 * Generates with one model's weights, continuously: samples enter as there is room for them. A call rejects with
 * RetryableError `EngineExited` when the engine ends before it answers.
 */
export interface Sampler {
  /** Resolves when the engine has ended although nobody closed it. Never rejects. */
  readonly exited: Promise<void>;
  /** Has room for such samples from now on. Drops those in flight. */
  makeRoom(room: SamplerRoom): Promise<void>;
  /**
   * The tokens of these requests, as they are made, until each sample has ended. Throws InvalidInputError for a request
   * that never fits, PreemptedError when `pause` drops its samples. Who stops reading drops the rest.
   */
  generate(requests: readonly GenerateRequest[]): AsyncIterable<DecodedTokens>;
  /** Ends the sample at once; tokens that are on their way may still come. Unknown keys are ignored. */
  abort(key: number): Promise<void>;
  /** Drops every sample, since the weights are about to change or training needs the memory. */
  pause(): Promise<void>;
  /** Takes samples again, with the weights as they are now. */
  resume(): Promise<void>;
  close(): Promise<void>;
}

/** What a sampler has loaded: the digest by which a publication of weights is named. */
export interface NamedWeights {
  readonly format: WeightsFormat;
  /** Hash of the blocks of fp32 values. */
  readonly hash: BlockHash;
}

/** A sampler with weights of its own. */
export interface OwningSampler extends Sampler {
  /** What samples, for the results of its jobs: a server's kind, version and model. Absent: the worker's engine. */
  readonly sampledBy?: string;
  /** The model's parameters, which decide where the bytes of a publication belong. */
  readonly parameters: readonly EngineParameter[];
  /**
   * Replaces the weights, and drops the samples in flight. Resolves with the digest of what is loaded, hashed by the
   * engine; after a failure the weights are undefined.
   */
  use(source: StateSource, named: NamedWeights, call?: Call): Promise<string>;
  /** Copies bytes of the weights as they are published, from `start` on. Absent: the engine cannot give them back. */
  readPublished?(format: WeightsFormat, start: number, into: Uint8Array): Promise<void>;
}
