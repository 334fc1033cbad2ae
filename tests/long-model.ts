/** A model with long responses that take some time, so that a worker can be killed in the middle of one. */
import { join } from 'node:path';
import { saveRandomModel } from './random-model.ts';
import type { ModelSizes } from './random-model.ts';

/** Maximum number of tokens in a response. */
export const longResponse = 512;

/** One token in `vocab_size` ends a response: four of five responses reach 512 tokens. */
const longSizes: ModelSizes = {
  hidden_size: 256,
  intermediate_size: 704,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 2048,
  max_position_embeddings: 640,
};

/** Saves it under `folder` and returns its path. */
export async function makeLongModel(folder: string): Promise<string> {
  const path = join(folder, 'long-model');
  await saveRandomModel(path, longSizes, 0.02);
  return path;
}

/** A run of it: 4 prompts × 4 responses in two rollout jobs; the reward is the parity of the tokens. */
export const longRecipe = (model: string) => ({
  model: { path: model },
  data: { max_response_length: longResponse },
  actor: { ppo_max_token_len_per_gpu: 2048 },
  trainer: { total_training_steps: 1 },
});
