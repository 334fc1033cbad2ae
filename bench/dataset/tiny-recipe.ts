/** A model and a recipe for measurements of rows: what the model says does not matter, its vocabulary is a real one. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../infra/home.ts';
import { readDecoderSpec } from '../../native/model/config.ts';
import { initialTensors } from '../../native/model/init.ts';
import { saveHuggingFace } from '../../models/folder.ts';

const recipe = `model:
  path: ./model
data:
  train_files: ./rows.jsonl
  train_batch_size: 8
  max_prompt_length: 512
  max_response_length: 4
rollout:
  n: 2
actor:
  ppo_mini_batch_size: 8
reward:
  scorer: exact
trainer:
  total_training_steps: 1
  test_freq: -1
  save_freq: -1
`;

const config = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  rms_norm_eps: 1e-5,
  hidden_act: 'silu',
  tie_word_embeddings: true,
  eos_token_id: 2,
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 2,
  vocab_size: 49_152,
  max_position_embeddings: 1024,
};

/** Writes `model` and `recipe.yaml` into the folder, which holds `rows.jsonl`. Returns the recipe's path. */
export async function writeTinyRecipe(folder: string): Promise<string> {
  const tensors = initialTensors(readDecoderSpec(config), 1, 0.02);
  const companions = join(packageRoot(), 'examples/02-smollm2-addition/smollm2');
  await saveHuggingFace(join(folder, 'model'), { config, tensors, dtype: 'float32', companions });
  const path = join(folder, 'recipe.yaml');
  writeFileSync(path, recipe);
  return path;
}
