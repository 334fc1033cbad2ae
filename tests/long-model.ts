/** A model whose responses are long, and that takes its time over them: workers can be hit in the midst of one. */
import { join } from 'node:path';
import { packageRoot } from '../infra/home.ts';
import { readDecoderConfig } from '../models/config.ts';
import { initialTensors } from '../models/init.ts';
import { saveHuggingFace } from '../models/weights.ts';

/** Tokens of a response at most. */
export const longResponse = 512;

/** One token in `vocab_size` ends a response: four in five get to 512 tokens. */
const longConfig = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 256,
  intermediate_size: 704,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 2048,
  max_position_embeddings: 640,
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

/** Saves it under `folder` and returns its path. */
export async function makeLongModel(folder: string): Promise<string> {
  const path = join(folder, 'long-model');
  // Small weights: the distribution over tokens stays flat.
  const tensors = initialTensors(readDecoderConfig({ ...longConfig }), 1, 0.02);
  await saveHuggingFace(path, { config: { ...longConfig }, tensors, dtype: 'float32', companions: join(packageRoot(), 'examples/00-arithmetic-sft/base') });
  return path;
}

/** A run of it: 4 prompts × 4 responses in two rollout jobs, rewarded by the parity of the tokens. */
export const longRecipe = (model: string) => ({
  model: { path: model },
  data: { max_response_length: longResponse },
  actor: { ppo_max_token_len_per_gpu: 2048 },
  trainer: { total_training_steps: 1 },
});
