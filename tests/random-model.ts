/** Small models with random weights, created on the spot. They are not trained, so they learn quickly. */
import { join } from 'node:path';
import { packageRoot } from '../infra/home.ts';
import { readDecoderSpec } from '../native/model/config.ts';
import { initialTensors } from '../native/model/init.ts';
import { saveHuggingFace } from '../models/folder.ts';

export interface ModelSizes {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads: number;
  readonly vocab_size: number;
  readonly max_position_embeddings: number;
  /** Default: true. */
  readonly tie_word_embeddings?: boolean;
}

export const llama = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  rope_scaling: null,
  hidden_act: 'silu',
  tie_word_embeddings: true,
  attention_bias: false,
  mlp_bias: false,
  eos_token_id: 1,
  pad_token_id: 0,
  bos_token_id: null,
  torch_dtype: 'float32',
};

/** `spread` of the weights: with a small value the distribution over tokens stays flat. */
export async function saveRandomModel(folder: string, sizes: ModelSizes, spread: number): Promise<void> {
  const config = { ...llama, ...sizes };
  const tensors = initialTensors(readDecoderSpec(config), 1, spread);
  await saveHuggingFace(folder, {
    config,
    tensors,
    dtype: 'float32',
    companions: join(packageRoot(), 'examples/00-arithmetic-sft/base'),
  });
}
