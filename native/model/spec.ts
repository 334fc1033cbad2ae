/**
 * A decoder as data: its tensors under their Hugging Face names, and the operations that read them, in order.
 * `native/model/families` makes it from a config.json; an engine runs it and knows no family.
 *
 * Linear layers, in the notation of torch: y = x·Wᵀ + b with W of shape [rows, in].
 */

export interface DecoderSpec {
  /** The family's name, for messages. */
  readonly family: string;
  /** Width of the residual stream. */
  readonly hidden: number;
  readonly vocab: number;
  /** Longest context that the model declares. */
  readonly maxPositions: number;
  /** Every tensor, names ascending by code units: the canonical order of flat buffers. */
  readonly tensors: readonly TensorSpec[];
  /** `table`: name of the tensor [vocab, hidden]. Its rows are multiplied by `scale`. */
  readonly embedding: { readonly table: string; readonly scale: number };
  readonly layers: readonly LayerSpec[];
  readonly finalNorm: NormSpec;
  readonly head: HeadSpec;
}

export interface TensorSpec {
  readonly name: string;
  readonly shape: readonly number[];
}

/** RMSNorm: x / sqrt(mean(x²) + eps) · (weight + offset). */
export interface NormSpec {
  readonly weight: string;
  readonly eps: number;
  /** 1 where the file holds the difference from 1 (gemma), else 0. */
  readonly offset: number;
}

/** A weight [rows, in] and its bias [rows]. */
export interface LinearPartSpec {
  readonly weight: string;
  readonly rows: number;
  readonly bias?: string;
}

/** One product whose weight lies in one or more tensors, one below the other: q, k, v; gate, up. */
export type LinearSpec = readonly LinearPartSpec[];

/** x += afterMixer(mixer(beforeMixer(x))); x += afterFfn(ffn(beforeFfn(x))). The norms after a block may be absent. */
export interface LayerSpec {
  readonly norms: {
    readonly beforeMixer: NormSpec;
    readonly afterMixer?: NormSpec;
    readonly beforeFfn: NormSpec;
    readonly afterFfn?: NormSpec;
  };
  readonly mixer: GqaSpec;
  readonly ffn: GluSpec;
}

/** Causal attention with grouped query heads. heads, kvHeads and headDim are the same in all layers. */
export interface GqaSpec {
  readonly kind: 'gqa';
  readonly heads: number;
  /** Divides `heads`: that many query heads share a key head. */
  readonly kvHeads: number;
  /** Width of a head, an even number. */
  readonly headDim: number;
  /** Scores are q·k·scale. */
  readonly scale: number;
  /** c > 0: scores become c·tanh(score / c), before the mask. 0: as they are. */
  readonly softcap: number;
  /** w > 0: position i sees j with i − j < w. 0: every earlier position. */
  readonly window: number;
  /** Inverse frequencies of rope, scaling applied; dimensions i and i + length turn as a pair. At most headDim / 2. */
  readonly rope: readonly number[];
  /** Norms over headDim, before rope. */
  readonly queryNorm?: NormSpec;
  readonly keyNorm?: NormSpec;
  /** Rows [q | k | v]. */
  readonly qkv: LinearSpec;
  readonly out: LinearSpec;
}

/** down(activation(gate)·up). */
export interface GluSpec {
  readonly kind: 'glu';
  readonly width: number;
  readonly activation: Activation;
  /** Rows [gate | up]. */
  readonly gateUp: LinearSpec;
  readonly down: LinearSpec;
}

/** geluTanh: gelu in its tanh form. */
export type Activation = 'silu' | 'geluTanh';

/**
 * What the last hidden state becomes. tokens: logits of the next token (softcap c > 0: c·tanh(logit / c)); a tied
 * head's projection is the embedding's table. values: a number per position. scores: numbers per sequence, read at its
 * last token.
 */
export type HeadSpec =
  | { readonly kind: 'tokens'; readonly projection: LinearSpec; readonly softcap: number }
  | { readonly kind: 'values'; readonly projection: LinearSpec }
  | { readonly kind: 'scores'; readonly projection: LinearSpec; readonly labels: number };

/** Is the output head the embedding's table? */
export function isTied({ head, embedding }: DecoderSpec): boolean {
  return head.projection.some(({ weight }) => weight === embedding.table);
}
