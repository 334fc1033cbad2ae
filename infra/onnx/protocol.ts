/** Messages between a classifier in ONNX and its thread. */

export interface ClassifierThreadData {
  /** Path of model.onnx. Weights in a file beside it are found by their name in it. */
  readonly path: string;
  readonly threads: number;
}

/** An input or an output. */
export interface TensorFacts {
  readonly name: string;
  /** `int64`, `float32` …; undefined for what is no tensor. */
  readonly type: string | undefined;
  /** A name stands for any length. Empty where the file does not say. */
  readonly shape: readonly (number | string)[];
}

export interface ClassifierFacts {
  readonly inputs: readonly TensorFacts[];
  readonly outputs: readonly TensorFacts[];
}

/** Sequences of one length, padded on the right. */
export interface PaddedBatch {
  readonly length: number;
  readonly tokens_RL: Int32Array;
  /** Tokens of each that are not padding. */
  readonly lengths_R: Int32Array;
  /** Name of the output to read. */
  readonly output: string;
}

export type FromClassifier =
  | { readonly type: 'ready'; readonly facts: ClassifierFacts }
  | { readonly type: 'scores'; readonly scores_R: Float32Array; readonly shape: readonly number[] }
  | { readonly type: 'failed'; readonly reason: string };
