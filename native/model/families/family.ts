/** What a family of models is: how its config.json becomes a decoder. docs/do/adding-a-family.md walks through one. */
import type { DecoderSpec } from '../spec.ts';
import type { Fields } from '../../../models/fields.ts';
import type { Tensors } from './tensors.ts';

export interface Family {
  /** `model_type` in config.json. */
  readonly name: string;
  /** Beginning of its classes' names in transformers: `Llama` for `LlamaForCausalLM`. */
  readonly classes: string;
  /** Throws InvalidInputError for a field that is missing, invalid or not supported. */
  readonly read: (config: Fields, tensors: Tensors) => DecoderBody;
}

/** A decoder without its head, which `architectures` decides. */
export interface DecoderBody
  extends Pick<DecoderSpec, 'hidden' | 'vocab' | 'maxPositions' | 'embedding' | 'layers' | 'finalNorm'> {
  /** Default of `tie_word_embeddings`. */
  readonly tiedByDefault: boolean;
  /** Soft cap of the logits; 0: none. */
  readonly logitSoftcap: number;
}
