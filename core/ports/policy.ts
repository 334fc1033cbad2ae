/**
 * The port of an engine that holds a model in one role: actor, critic, reference or reward model. Code above it does
 * not know which engine it is: one of this process, or a child process. Shapes: the legend in core/rl/ragged.ts.
 */
import type { ByteSink } from '../byte-sink.ts';
import type { BlockHash, ComputeType, EngineParameter, StatePart, WeightsFormat } from '../parameters.ts';
import type { Division } from '../division.ts';
import type { TokenColumns } from '../token-columns.ts';

/** What a model has on top: logits of the next token, a value at each token, or scores of a sequence. */
export type HeadKind = 'tokens' | 'values' | 'scores';

/** What a long call observes and reports. */
export interface Call {
  /** Aborted when the result is no longer needed. An engine may finish what it has begun. */
  readonly signal?: AbortSignal;
  /** Called while the work advances. */
  readonly tick?: () => void;
}

export interface EngineOptions {
  readonly compute: ComputeType;
  /** Every sum has one order, whatever the batch and the threads. In bf16 the bits depend on the class of processor. */
  readonly deterministic: boolean;
  /** Threads of the engine's thread pool. */
  readonly threads: number;
  /** Processes over which a model is divided. Default: one. */
  readonly ranks?: number;
  /** How these share it beside dividing its parameters. Absent: not. */
  readonly division?: Division;
  /** Devices over which a sampler divides its model. Default: one. */
  readonly tensorParallel?: number;
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
   * Index of the earlier sequence that each sequence continues, or −1. The earlier one continues none itself. A
   * sequence attends to the tokens of the one that it continues, and its positions go on behind them. Absent: no
   * sequence continues another.
   */
  readonly parents_S?: Int32Array;
  /**
   * Packed indices whose outputs are wanted, in any order. The last token of a prompt that several completions share is
   * wanted once for each.
   */
  readonly positions_P: Int32Array;
  /** The token scored at each of these positions; `logProbs` needs it. */
  readonly targets_P?: Int32Array;
  /** What the sampler gave for these tokens, by name. */
  readonly columns_P?: TokenColumns;
}

/** What a forward pass can give: at each of the P positions, and of the pass as a whole. */
export interface OutputArrays {
  /** [P]: of the target under softmax(logits / temperature). */
  readonly logProbs: Float32Array;
  /** [P]: of that distribution, in nats. */
  readonly entropy: Float32Array;
  /** [P]: Σ p² over the vocabulary under that distribution, 1 for a certain token; not differentiable. */
  readonly sumPiSquared: Float32Array;
  /** [P][vocab]: after the model's own soft cap, before the temperature; not differentiable. */
  readonly logits: Float32Array;
  /** [P][topK]: the most likely tokens, the most likely first, of equals the one with the lower id. */
  readonly topTokens: Int32Array;
  /** [P][topK]: their log-probs, as above; not differentiable. */
  readonly topLogProbs: Float32Array;
  /** [P]: of a value head. */
  readonly values: Float32Array;
  /** [P][labels]: of a score head; a sequence's score is the one at its last token. */
  readonly scores: Float32Array;
  /** [layers][experts]: of a mixture of experts, the tokens of the pass that each expert got; not differentiable. */
  readonly expertTokens: Int32Array;
  /** [1]: of a mixture, how unevenly its routers spread the tokens: engines/torch/petrel_torch/routing.py. */
  readonly routerLoss: Float32Array;
}
export type OutputName = keyof OutputArrays;
export type DifferentiableOutput = 'logProbs' | 'entropy' | 'values' | 'scores' | 'routerLoss';

/** The outputs that a model with this head gives, whatever is below it. */
export const outputsOfHead: Readonly<Record<HeadKind, readonly OutputName[]>> = {
  tokens: ['logProbs', 'entropy', 'sumPiSquared', 'logits', 'topTokens', 'topLogProbs'],
  values: ['values'],
  scores: ['scores'],
};

export interface ForwardOptions<Wanted extends OutputName> {
  /** Distribution is softmax(logits / temperature). */
  readonly temperature: number;
  /** Each must be one that the model gives. */
  readonly wants: readonly Wanted[];
  /** Number of tokens from 1 to the vocabulary's size; `topTokens` and `topLogProbs` need it. */
  readonly topK?: number;
  /** Keep activations for `backward`; false for scoring only (then `handle` is 0). */
  readonly keep: boolean;
}

export interface ForwardResult<Wanted extends OutputName> {
  readonly handle: number;
  readonly outputs: Pick<OutputArrays, Wanted>;
}

/** A forward pass that was kept, and the gradients of its outputs. */
export interface BackwardPass {
  readonly handle: number;
  readonly gradients: OutputGradients;
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

/** Elements [start, end) of a part. */
export interface StatePiece {
  readonly part: string;
  readonly start: number;
  readonly end: number;
}

/** The place from which a model's state comes. */
export type StateSource =
  /**
   * The weights of a Hugging Face folder, without moments or steps. `newHead`: not the folder's head; the model's own
   * starts at 0.
   */
  | { readonly type: 'folder'; readonly folder: string; readonly newHead?: boolean }
  /**
   * Pieces of a stored state: `read` asks for the sink of each piece and gives it the piece's values, little-endian, in
   * the type of its part. What it leaves out stays as it is. `steps`: optimiser steps taken so far.
   */
  | {
      readonly type: 'pieces';
      readonly read: (sinkOf: (piece: StatePiece) => ByteSink) => Promise<void>;
      readonly steps: number;
    }
  /** Published weights: `read` asks for the sink of bytes [start, end) of the publication, and gives it these bytes. */
  | {
      readonly type: 'published';
      readonly format: WeightsFormat;
      readonly read: (sinkOf: (start: number, end: number) => ByteSink) => Promise<void>;
    };

/** A copy of a state in shared memory, which the threads of this process read. */
export interface StateCopy {
  readonly fd: number;
  /** Byte at which each part begins, in their order. */
  readonly starts: readonly number[];
  /** Called once, when nobody reads it any more. */
  readonly release: () => void;
}

/** A model that is asked for its outputs only. */
export type ScoringModel = Pick<PolicyEngine, 'head' | 'vocab' | 'maxPositions' | 'outputs' | 'lanes' | 'forward'>;

/**
 * A model that scores tokens and, when trainable, learns. Its weights and moments are its own: they come in by `load`
 * and go out by `read`. A call rejects with RetryableError `EngineExited` when the engine ends before it answers. One
 * caller at a time.
 */
export interface PolicyEngine {
  readonly head: HeadKind;
  /** Number of tokens that it knows. */
  readonly vocab: number;
  /** Longest context that the model declares. */
  readonly maxPositions: number;
  readonly parameters: readonly EngineParameter[];
  /** Number of elements of all parameters. */
  readonly elements: number;
  /** The named arrays of its state, in the order in which they are saved; the first is what samplers load. */
  readonly parts: readonly StatePart[];
  /** The outputs that its forward pass can give. */
  readonly outputs: readonly OutputName[];
  /** Experts of each layer of a mixture, if it gives `expertTokens`. */
  readonly experts?: number;
  /** Optimiser steps taken so far (AdamW's t). */
  readonly steps: number;
  /** The same model with its adapter off, where it has one. It keeps no activations. */
  readonly base?: ScoringModel;
  /** Resolves when the engine has ended although nobody closed it. Never rejects. */
  readonly exited: Promise<void>;
  /** Replaces the state. After a failure it is undefined until the next `load`. */
  load(source: StateSource, call?: Call): Promise<void>;
  /**
   * Micro-batches that it computes side by side: the ranks of a group take part in each pass, every one with a
   * micro-batch of its own. 1 for an engine that computes one after the other.
   */
  readonly lanes: number;
  /**
   * Computes at most `lanes` micro-batches; lanes without one take part with nothing. Gives a result for each
   * micro-batch. Throws InvalidInputError for an output that it does not give.
   */
  forward<Wanted extends OutputName>(
    batches: readonly PackedBatch[],
    options: ForwardOptions<Wanted>,
    call?: Call,
  ): Promise<readonly ForwardResult<Wanted>[]>;
  /**
   * Adds d(loss)/d(weights) into the gradients, given those of the outputs of one forward call. Frees the handles.
   */
  backward(passes: readonly BackwardPass[], call?: Call): Promise<void>;
  /** Frees the handles of one forward call. */
  discard(handles: readonly number[]): Promise<void>;
  /** Clips, updates, zeroes the gradients, refreshes compute copies. Non-finite norm: zeroes the gradients only. */
  step(adamw: AdamW): Promise<StepResult>;
  zeroGrads(): Promise<void>;
  /** Digests [blocks][32] of each block of a part, by the engine's own threads. The last block may be shorter. */
  blockDigests(part: string, blockBytes: number, hash: BlockHash, call?: Call): Promise<Uint8Array>;
  /** Copies a part's elements from `start` on into `into`, which has the part's type. */
  read(part: string, start: number, into: Float32Array | Uint16Array): Promise<void>;
  /**
   * Copies the state without a way through this process: only of an engine whose processes hold it. The copy stays as
   * it is, whatever becomes of the engine; a second one waits until it is released. Undefined: there is no room for it.
   */
  copy?(call?: Call): Promise<StateCopy | undefined>;
  /**
   * Digests [blocks][32], BLAKE3, of the weights as they are published in BF16. Only of an engine that computes in
   * bf16.
   */
  publishedDigests(blockBytes: number, call?: Call): Promise<Uint8Array>;
  /** Copies bytes of the published weights from `start` on. BF16 only of an engine that computes in bf16. */
  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void>;
  close(): Promise<void>;
}
