/**
 * The ports of an engine and of a store. Code above these ports does not depend on a particular engine.
 *
 * Calls of the trainer and the rollout engine are synchronous and heavy, so they are made on an engine's own thread
 * (workers/engine), never on a main thread. Calls of the store return promises. Shapes: the legend in
 * core/rl/ragged.ts.
 */
import type { DecoderSpec, HeadKind } from './decoder-spec.ts';

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
  /** Every sum over K has one order, whatever the batch; needs compute fp32. */
  readonly deterministic: boolean;
  /** Threads of the engine's thread pool. */
  readonly threads: number;
}

/**
 * Sequences packed side by side. They do not attend to each other, and each starts at position 0, but for those that
 * continue another one: completions can hang on one copy of their prompt.
 */
export interface PackedBatch {
  readonly tokens_N: Int32Array;
  /** S + 1 offsets into tokens_N, first 0, last N. */
  readonly cuSeqlens: Int32Array;
  /**
   * For each sequence the index of the one that it continues, or −1: an earlier one, which itself continues none. It
   * attends to that one's tokens, and its positions go on behind them. Absent: none continues another.
   */
  readonly parents_S?: Int32Array;
  /**
   * Packed indices whose outputs are wanted, in any order. The last token of a prompt that several completions share is
   * wanted once for each.
   */
  readonly positions_P: Int32Array;
  /** The token scored at each of these positions; `logProbs` needs it. */
  readonly targets_P?: Int32Array;
}

/**
 * What a forward pass can give at each of the P positions.
 *
 * - logProbs [P]: of the target under softmax(logits / temperature)
 * - entropy [P]: of that distribution, in nats
 * - logits [P][vocab]: after the model's own soft cap, before the temperature; not differentiable
 * - values [P]: of a value head
 * - scores [P][labels]: of a score head; a sequence's score is the one at its last token
 */
export type OutputName = 'logProbs' | 'entropy' | 'logits' | 'values' | 'scores';
export type DifferentiableOutput = Exclude<OutputName, 'logits'>;

/** The outputs that a model with this head gives. */
export const outputsOfHead: Readonly<Record<HeadKind, readonly OutputName[]>> = {
  tokens: ['logProbs', 'entropy', 'logits'],
  values: ['values'],
  scores: ['scores'],
};

export interface ForwardOptions<Wanted extends OutputName> {
  /** Distribution is softmax(logits / temperature). */
  readonly temperature: number;
  /** Each must be one that the model's head gives. */
  readonly wants: readonly Wanted[];
  /** Keep activations for `backward`; false for scoring only (then `handle` is 0). */
  readonly keep: boolean;
}

export interface ForwardResult<Wanted extends OutputName> {
  readonly handle: number;
  readonly outputs: Readonly<Record<Wanted, Float32Array>>;
}

/** d(loss)/d(output), in the output's shape; an absent one is 0. */
export type OutputGradients = Readonly<Partial<Record<DifferentiableOutput, Float32Array>>>;

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

/** A model that scores tokens and, when trainable, learns. */
export interface TrainerEngine {
  readonly spec: DecoderSpec;
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
  /** Throws InvalidInputError for an output that the model's head does not give. */
  forward<Wanted extends OutputName>(batch: PackedBatch, options: ForwardOptions<Wanted>): ForwardResult<Wanted>;
  /** Adds d(loss)/d(weights) into grads, given the gradients of outputs. Frees the handle. */
  backward(handle: number, gradients: OutputGradients): void;
  discard(handle: number): void;
  /** Clips, updates, zeroes the gradients, refreshes compute copies. Non-finite norm: zeroes the gradients only. */
  step(adamw: AdamW): StepResult;
  zeroGrads(): void;
  /**
   * SHA-256 [blocks][32] of each block of the weights or of a moment, by the engine's threads. The last may be shorter.
   * `onProgress` is called after every few blocks.
   */
  blockDigests(part: 'weights' | 'm' | 'v', blockBytes: number, onProgress?: () => void): Uint8Array;
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

/** Continuous batching over slots. */
export interface RolloutEngine {
  /** Queues a request; samples enter as slots and KV pages become free. */
  submit(request: GenerateRequest): void;
  /** Admits, prefills and decodes one token for every live sample. Empty arrays when idle. */
  step(): DecodedTokens;
  /** Drops the sample at once and frees its slot. Unknown keys are ignored. */
  abort(key: number): void;
  /** Drops every sample. Call this when the weights have changed. */
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
  /** Since the engine was created. */
  readonly decodedTokens: number;
  readonly prefilledTokens: number;
}

/**
 * The object store. Only `create` can decide anything; all other objects are content-addressed. Objects that `create`
 * and `put` have written survive a power cut once the call returns.
 */
export interface Store {
  readonly url: string;
  /** The URL, and what it does not contain, such as the server: distinguishes stores. */
  readonly place: string;
  /**
   * Conditional create: `created` for one caller, `exists` for all others. The existing object is durable in both
   * cases. It calls `settle` first, so that a record cannot survive a power cut without the objects that its writer had
   * read. At most a few MiB. A caller whose own object exists gets `created`, also after a repeated request. `hold` is
   * awaited before the last byte is sent, so that a test can release many writers at the same time.
   */
  create(key: string, bytes: Uint8Array, hold?: () => Promise<void>): Promise<'created' | 'exists'>;
  /** Writes a blob (its key names its content). Idempotent; readers never see a part of it. */
  put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>;
  /** undefined when absent. `range` is [start, end) in bytes. */
  get(key: string, range?: readonly [number, number]): Promise<Uint8Array | undefined>;
  stream(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Size in bytes; undefined when absent. */
  head(key: string): Promise<number | undefined>;
  /**
   * Makes durable what this object has read, found and removed so far, because another process may have written it just
   * before it died. Call this before the facts are passed on, and before anything is removed because of them.
   */
  settle(): Promise<void>;
  /** Keys under a prefix, ascending. Listings may lag, so nothing may depend on a missing entry. */
  list(prefix: string): Promise<string[]>;
  /** Names directly under a prefix that ends in "/", without the prefix; folders end in "/". May lag too. */
  children(prefix: string): Promise<string[]>;
  /**
   * Removes one object. If the key ends in "/", removes every object under it that `only` accepts; by default all.
   * Removing an absent object is no error. Throws TerminalError `OutsideStore` when a symbolic link leads out of the
   * folder.
   */
  remove(key: string, only?: (key: string) => boolean): Promise<void>;
  /** Removes temporary files and unfinished uploads that dead writers left before the given time. Returns how many. */
  removeLeftovers?(before: Date): Promise<number>;
  /** A local path of the object, for memory mapping, when the store is a folder; undefined otherwise. */
  localPath(key: string): string | undefined;
}
