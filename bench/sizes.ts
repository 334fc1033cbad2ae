/** The models and batches that are compared, defined once for both sides. */
import { InvalidInputError } from '../core/errors.ts';

export interface Size {
  /** Keys of Hugging Face's LlamaConfig. */
  readonly shape: {
    readonly num_hidden_layers: number;
    readonly hidden_size: number;
    readonly num_attention_heads: number;
    readonly num_key_value_heads: number;
    readonly intermediate_size: number;
    readonly vocab_size: number;
    readonly tie_word_embeddings: boolean;
  };
  /** Sequences of a training step, and tokens of each. */
  readonly batch: number;
  readonly length: number;
  /** Tokens of a prompt when decoding. */
  readonly prompt: number;
}

/** New tokens of every decoded sample. */
export const newTokens = 64;

/** Samples that decode together, one row each. */
export const decodeBatches = [1, 16, 64, 256] as const;

/** Prompts of a prefill row. */
export const prefillPrompts = 16;

export const sizeNames = ['S', 'M', 'R'] as const;
export type SizeName = (typeof sizeNames)[number];

const sizes: Readonly<Record<SizeName, Size>> = {
  S: { shape: shape(4, 256, 4, 4, 704, 512, false), batch: 64, length: 128, prompt: 16 },
  M: { shape: shape(12, 768, 12, 4, 2048, 32_000, true), batch: 8, length: 512, prompt: 64 },
  /** SmolLM2-135M. */
  R: { shape: shape(30, 576, 9, 3, 1536, 49_152, true), batch: 16, length: 256, prompt: 64 },
};

/** A training step of prompts with several responses each. */
export interface Groups {
  readonly prompts: number;
  readonly responses: number;
  /** Tokens of each. Only responses are scored. */
  readonly promptTokens: number;
  readonly responseTokens: number;
  /** Sequences of one forward and backward pass, on both sides. */
  readonly sequencesPerPass: number;
}

export function groupsOf(quick: boolean): Groups {
  return quick
    ? { prompts: 2, responses: 2, promptTokens: 8, responseTokens: 8, sequencesPerPass: 2 }
    : { prompts: 8, responses: 4, promptTokens: 256, responseTokens: 256, sequencesPerPass: 8 };
}

/** Used instead of every size with `--quick`. */
const tiny: Size = { shape: shape(2, 64, 1, 1, 64, 64, true), batch: 4, length: 16, prompt: 8 };

export function sizeOf(name: SizeName, quick: boolean): Size {
  const size = quick ? tiny : sizes[name];
  if (size.prompt + newTokens > maxPositions)
    throw new InvalidInputError(`size ${name} decodes past ${maxPositions} positions`);
  return size;
}

const maxPositions = 2048;

/** config.json of a size. */
export function configJson({ shape: keys }: Size): Readonly<Record<string, unknown>> {
  return {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    max_position_embeddings: maxPositions,
    rms_norm_eps: 1e-6,
    ...keys,
  };
}

function shape(
  layers: number,
  hidden: number,
  heads: number,
  kvHeads: number,
  ffn: number,
  vocab: number,
  tied: boolean,
): Size['shape'] {
  return {
    num_hidden_layers: layers,
    hidden_size: hidden,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    intermediate_size: ffn,
    vocab_size: vocab,
    tie_word_embeddings: tied,
  };
}
