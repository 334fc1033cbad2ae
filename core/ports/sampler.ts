/** The port of an engine that samples responses. */

export interface SamplingSettings {
  /** 0 = greedy. */
  readonly temperature: number;
  /** 0 = off. Ties with the k-th value are kept. */
  readonly topK: number;
  /** ≥ 1 = off. */
  readonly topP: number;
  /** 0 = off. */
  readonly minP: number;
  /** 1 = off. */
  readonly repetitionPenalty: number;
}

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
  /** Counter-based random bits: Philox4x32-10 with key = seed, counter = (draw, sample, turn, position in response). */
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

/** One decode step over all live samples: arrays of equal length, one entry per token made. */
export interface DecodedTokens {
  readonly keys: Int32Array;
  readonly tokens: Int32Array;
  /**
   * Log-prob under softmax(logits / temperature) without filters; training recomputes the same. Greedy: temperature 1.
   */
  readonly logProbs: Float32Array;
  /** Log-prob under the distribution sampled from (after top-k, top-p, min-p, penalties). Greedy: 0. */
  readonly samplingLogProbs: Float32Array;
  readonly finish: Uint8Array;
}

/**
 * Continuous batching over slots. A call rejects with RetryableError `EngineExited` when the engine ends before it
 * answers.
 */
export interface Sampler {
  /**
   * `counter`: the bits of a sample follow from `GenerateSample.random`, so a sample is the same wherever it is made.
   * `seeded`: it is the same only on the same engine.
   */
  readonly randomness: 'counter' | 'seeded';
  /** Resolves when the engine has ended although nobody closed it. Never rejects. */
  readonly exited: Promise<void>;
  /**
   * Queues a request; samples enter as slots and KV pages become free. Throws InvalidInputError for one that never
   * fits.
   */
  submit(request: GenerateRequest): Promise<void>;
  /** Admits, prefills and decodes one token for every live sample. Empty arrays when idle. */
  step(): Promise<DecodedTokens>;
  /** Drops the sample at once and frees its slot. Unknown keys are ignored. */
  abort(key: number): Promise<void>;
  /** Drops every sample. Call this when the weights have changed. */
  reset(): Promise<void>;
  close(): Promise<void>;
}
