/**
 * What the rest of petrel needs from an engine. Nothing above these ports knows which engine is behind.
 *
 * Calls of the trainer and the rollout engine are synchronous and heavy: they are made on an engine's own thread
 * (workers/engine), never on a main thread. Calls of the store return promises.
 * Shapes: the legend in core/rl/ragged.ts.
 */

/** A decoder's shape, independent of where it came from. Made by `models/config` from a Hugging Face `config.json`. */
export interface DecoderConfig {
  readonly family: 'llama' | 'qwen2' | 'qwen3';
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly ffn: number;
  readonly vocab: number;
  readonly normEps: number;
  /** True: no `lm_head.weight`; the embedding serves as the output head and receives both gradients. */
  readonly tied: boolean;
  readonly qkvBias: boolean;
  readonly outBias: boolean;
  readonly mlpBias: boolean;
  /** RMSNorm of q and k over headDim, before rope (qwen3). */
  readonly qkNorm: boolean;
  /** Inverse frequencies of rope, headDim / 2 values, scaling (linear, llama3) already applied. */
  readonly ropeInvFreq: readonly number[];
  /** Per layer: 0 = full causal; w > 0 = position i sees j with i − j < w. */
  readonly windows: readonly number[];
  /** Longest context the model declares. */
  readonly maxPositions: number;
}

/** One parameter inside the flat fp32 buffers, under its Hugging Face name. Canonical order: names ascending (code units). */
export interface ParameterInfo {
  readonly name: string;
  readonly shape: readonly number[];
  /** Offset in elements into every flat buffer (weights, grads, m, v). */
  readonly offset: number;
  readonly size: number;
}

export type ComputeType = 'fp32' | 'bf16';

export interface EngineOptions {
  readonly compute: ComputeType;
  /** One K-order of every sum whatever the batch; needs compute fp32. */
  readonly deterministic: boolean;
  /** Threads of the compute team. */
  readonly threads: number;
}

/** Sequences side by side, never seeing each other; each starts at position 0. */
export interface PackedBatch {
  readonly tokens_N: Int32Array;
  /** S + 1 offsets into tokens_N, first 0, last N. */
  readonly cuSeqlens: Int32Array;
  /** Packed indices whose next-token distribution is scored, ascending. */
  readonly positions_P: Int32Array;
  /** The token scored at each of these positions. */
  readonly targets_P: Int32Array;
}

export interface ForwardOptions {
  /** Distribution is softmax(logits / temperature). */
  readonly temperature: number;
  readonly entropy: boolean;
  /** Keep activations for `backward`; false for scoring only (then `handle` is 0). */
  readonly keep: boolean;
}

export interface ForwardResult {
  readonly handle: number;
  readonly logProbs_P: Float32Array;
  /** Present when asked for. */
  readonly entropy_P?: Float32Array;
}

export interface AdamW {
  readonly lr: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  /** Gradients are multiplied by min(1, maxGradNorm / (norm + 1e-6)); 0 = no clipping. */
  readonly maxGradNorm: number;
}

export interface StepResult {
  /** Global L2 norm before clipping; may be NaN or Infinity, then taken is false and nothing changed. */
  readonly gradNorm: number;
  readonly taken: boolean;
}

/** A model that scores, and, when trainable, learns. */
export interface TrainerEngine {
  readonly config: DecoderConfig;
  readonly parameters: readonly ParameterInfo[];
  /** Flat fp32 master weights. After writing to it from outside, call `weightsChanged`. */
  readonly weights: Float32Array;
  /** Flat fp32 gradients and AdamW moments; empty when not trainable. */
  readonly grads: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  /** Optimiser steps taken so far (AdamW's t). */
  steps: number;
  weightsChanged(): void;
  forward(batch: PackedBatch, options: ForwardOptions): ForwardResult;
  /** Adds d(loss)/d(weights) into grads, given d(loss)/d(logProbs_P) and d(loss)/d(entropy_P). Frees the handle. */
  backward(handle: number, dLogProbs_P: Float32Array, dEntropy_P?: Float32Array): void;
  discard(handle: number): void;
  /** Clips, updates, zeroes the gradients, refreshes compute copies. Non-finite norm: zeroes the gradients only. */
  step(adamw: AdamW): StepResult;
  zeroGrads(): void;
  close(): void;
}

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
  /** The caller's name for the sample, unique among live ones; a positive 31-bit integer. */
  readonly key: number;
  /** Counter-based random bits: Philox4x32-10 with key = seed, counter = (draw, sample, turn, position in response). */
  readonly random: {
    readonly seed: readonly [number, number];
    readonly draw: number;
    readonly sample: number;
    readonly turn: number;
  };
  /** Tokens already generated (resume): the sample goes on after them. */
  readonly prefix?: Int32Array;
}

/** 0 = goes on, 1 = stop token, 2 = maxNewTokens reached. */
export type FinishCode = 0 | 1 | 2;

/** One decode step over all live samples: arrays of equal length, one entry per token made. */
export interface DecodedTokens {
  readonly keys: Int32Array;
  readonly tokens: Int32Array;
  /** Log-prob under softmax(logits / temperature), no filters: what training recomputes. Greedy: temperature 1. */
  readonly logProbs: Float32Array;
  /** Log-prob under the distribution sampled from (after top-k, top-p, min-p, penalties). Greedy: 0. */
  readonly samplingLogProbs: Float32Array;
  readonly finish: Uint8Array;
}

/** Continuous batching over slots. */
export interface RolloutEngine {
  /** Queues a request; samples enter as slots and KV pages become free. */
  submit(request: GenerateRequest): void;
  /** Admits, prefills and decodes one token for every live sample. Empty arrays when idle. */
  step(): DecodedTokens;
  /** Forgets the sample at once and frees its slot. Unknown keys are ignored. */
  abort(key: number): void;
  /** Drops every sample; call when the weights behind it changed. */
  reset(): void;
  readonly stats: RolloutStats;
  close(): void;
}

export interface RolloutStats {
  readonly live: number;
  readonly waiting: number;
  readonly freeSlots: number;
  readonly kvPagesUsed: number;
  readonly kvPagesTotal: number;
  /** Since creation. */
  readonly decodedTokens: number;
  readonly prefilledTokens: number;
}

/**
 * The object store. `create` is the only way to decide anything; all else is content-addressed. What `create` and `put`
 * have written survives a power cut once they return.
 */
export interface Store {
  readonly url: string;
  /** The url and what it does not say, such as the server that was asked: tells stores apart. */
  readonly place: string;
  /**
   * Conditional create: `created` once, `exists` ever after; the object that is there is durable in both cases. It calls
   * `settle` first, so a record never survives what its writer knew when it wrote it. At most a few MiB. A call whose
   * own object stands there is told `created`, also when the store had to be asked twice. `hold` is awaited when all has
   * been sent that does not yet decide: many writers can so be let go at one moment.
   */
  create(key: string, bytes: Uint8Array, hold?: () => Promise<void>): Promise<'created' | 'exists'>;
  /** Writes a fact (a key that names its content). Idempotent; readers never see half of it. */
  put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>;
  /** undefined when absent. `range` is [start, end) in bytes. */
  get(key: string, range?: readonly [number, number]): Promise<Uint8Array | undefined>;
  stream(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Size in bytes; undefined when absent. */
  head(key: string): Promise<number | undefined>;
  /**
   * Makes durable what this object has read, found and removed so far: another process may have written it a moment ago
   * and died since. To be called before somebody else is told of it, and before anything is removed because of it.
   */
  settle(): Promise<void>;
  /** Keys under a prefix, ascending. A hint: it may lag, and nothing may depend on a missing entry. */
  list(prefix: string): Promise<string[]>;
  /** Names directly under a prefix that ends in "/", without it; folders end in "/". A hint too. */
  children(prefix: string): Promise<string[]>;
  /**
   * One object; when the key ends in "/", every object under it that `only` wants (all, when it is left out). Removing what
   * is absent is no error. Throws TerminalError `OutsideStore` where a symbolic link leads out of a folder.
   */
  remove(key: string, only?: (key: string) => boolean): Promise<void>;
  /** Removes what writers that died left before then, and nobody ever sees: temporary files, unfinished uploads. How many. */
  removeLeftovers?(before: Date): Promise<number>;
  /** A local path of the object when the store is a folder, for mapping; undefined elsewhere. */
  localPath(key: string): string | undefined;
}
