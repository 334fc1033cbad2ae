/** How the parameters and the state of a model are named, laid out, published and hashed. */

/**
 * One parameter inside the flat fp32 buffers, under its Hugging Face name. Canonical order: names ascending (code
 * units).
 */
export interface ParameterInfo {
  readonly name: string;
  readonly shape: readonly number[];
  /** Offset in elements into every flat buffer (weights, grads, m, v). */
  readonly offset: number;
  readonly size: number;
}

/** A parameter of an engine. */
export interface EngineParameter extends ParameterInfo {
  /** BF16: only products read it, and they round it to bf16. F32: it is read as it is. */
  readonly computed: 'F32' | 'BF16';
  /** It is part of the model and does not learn: its moments are 0. */
  readonly fixed?: true;
}

/**
 * How weights are published: in fp32, or as a model that computes in bf16 reads them (core/records/publications.ts).
 */
export const weightsFormats = ['F32', 'BF16'] as const;
export type WeightsFormat = (typeof weightsFormats)[number];

export type ComputeType = 'fp32' | 'bf16';

/** A named array of a state. Its engine says which there are: weights, moments, an adapter. */
export interface StatePart {
  /** A word: the name of its tensor in the shards of a checkpoint. */
  readonly name: string;
  readonly dtype: 'F32' | 'BF16';
  readonly elements: number;
}

/** Hash of the blocks in a state's digest. Of 32 bytes. */
export const blockHashes = ['sha256', 'blake3'] as const;
export type BlockHash = (typeof blockHashes)[number];
