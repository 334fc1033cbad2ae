/**
 * A model whose responses end after very different numbers of tokens, so that samples of one rollout job end one by
 * one.
 */
import { join } from 'node:path';
import type { Tree } from '../core/recipe/index.ts';
import { saveRandomModel } from './random-model.ts';
import type { ModelSizes } from './random-model.ts';

/** Sizes of a model for which about one token in 96 ends a response. */
const unevenSizes: ModelSizes = {
  hidden_size: 256,
  intermediate_size: 704,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 96,
  max_position_embeddings: 640,
};

/** Saves it under `folder` and returns its path. */
export async function makeUnevenModel(folder: string): Promise<string> {
  const path = join(folder, 'uneven-model');
  await saveRandomModel(path, unevenSizes, 0.02);
  return path;
}

/** Two iterations of 8 prompts × 4 responses of up to 512 tokens, in one rollout job each. */
export const unevenRecipe = (model: string, scorer: string): Tree => ({
  model: { path: model },
  data: { train_batch_size: 8, max_response_length: 512 },
  rollout: { n: 4, max_num_seqs: 32 },
  actor: { ppo_mini_batch_size: 8, ppo_max_token_len_per_gpu: 2048 },
  reward: { custom_reward_function: { path: scorer, deterministic: true } },
  trainer: { total_training_steps: 2 },
});
