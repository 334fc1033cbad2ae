/** The recipe of the bench: responses of one rollout job that end one by one, and a scorer that takes a given time. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { arithmeticRows } from '../../api/data/arithmetic.ts';
import { packageRoot } from '../../infra/home.ts';
import { readDecoderSpec } from '../../native/model/config.ts';
import { initialTensors } from '../../native/model/init.ts';
import { saveHuggingFace } from '../../models/folder.ts';

/** What the scorer does for each sample, in ms: it waits, or it computes for so much processor time. */
export interface ScorerWork {
  readonly sleepMs: number;
  readonly computeMs: number;
}

export const prompts = 64;
export const samplesPerPrompt = 8;
/** Scorer processes. */
export const scorerProcesses = 8;
const longestResponse = 512;

/** One token in 96 ends a response, so their lengths differ much. */
const config = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 384,
  intermediate_size: 1024,
  num_hidden_layers: 4,
  num_attention_heads: 6,
  num_key_value_heads: 6,
  vocab_size: 96,
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

/** Writes model, rows and scorers. Returns the recipe's file. */
export async function writeRecipe(folder: string, iterations: number): Promise<string> {
  await mkdir(folder, { recursive: true });
  const tensors = initialTensors(readDecoderSpec(config), 1, 0.02);
  const companions = join(packageRoot(), 'examples/00-arithmetic-sft/base');
  await saveHuggingFace(join(folder, 'model'), { config, tensors, dtype: 'float32', companions });
  const rows = arithmeticRows({
    rows: prompts,
    seed: 3,
    split: 'train',
    preset: 'digits',
    digits: 2,
    sft: false,
    careless: 0,
    dataSource: 'arithmetic',
    exclude: new Set(),
  });
  await writeFile(join(folder, 'train.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  await writeFile(join(folder, 'scorer.mjs'), scorer);
  const recipe = {
    name: 'scorers',
    model: { path: './model' },
    data: {
      train_files: './train.jsonl',
      train_batch_size: prompts,
      max_prompt_length: 8,
      max_response_length: longestResponse,
    },
    rollout: { n: samplesPerPrompt, max_num_seqs: prompts * samplesPerPrompt },
    actor: { ppo_mini_batch_size: prompts, optim: { lr: 1e-6, weight_decay: 0 } },
    reward: { custom_reward_function: { path: './scorer.mjs' }, num_workers: scorerProcesses, timeout: 60 },
    trainer: { total_training_steps: iterations, save_freq: -1, val_before_train: false },
  };
  const path = join(folder, 'recipe.json');
  await writeFile(path, JSON.stringify(recipe));
  return path;
}

/** All of them give the same score, so all runs generate the same tokens. */
const scorer = `import { setTimeout as sleep } from 'node:timers/promises';

export async function computeScore({ solutionStr }, { sleepMs, computeMs }) {
  if (sleepMs > 0) await sleep(sleepMs);
  const before = process.cpuUsage();
  for (let used = 0; used < 1000 * computeMs; ) {
    const { user, system } = process.cpuUsage(before);
    used = user + system;
  }
  return solutionStr.length % 2;
}
`;
