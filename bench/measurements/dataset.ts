/**
 * A million rows: how soon after `petrel run` a worker has the first job, with and without filtering of long prompts,
 * compared with the time that the tokenizer alone needs for the same prompts on one thread; also the memory and the
 * longest turns of each process.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../infra/home.ts';
import { readDecoderSpec } from '../../models/config.ts';
import { initialTensors } from '../../models/init.ts';
import { saveHuggingFace } from '../../models/weights.ts';
import { timeFirstJob } from '../dataset/first-job.ts';
import type { FirstJob } from '../dataset/first-job.ts';
import { writeRows } from '../dataset/million-rows.ts';
import { timeTokenizer } from '../dataset/tokenizer-time.ts';
import type { Measurement, Session, Values } from '../measurement.ts';

const rowBytes = 600;
const processes = ['run', 'worker', 'control'] as const;
const filters = ['off', 'on'] as const;

const rowsOfFilter = (filter: (typeof filters)[number]) => [
  { name: `dataset.million.start.${filter}`, unit: 's' } as const,
  { name: `dataset.million.processor.${filter}`, unit: 's' } as const,
  ...processes.map((one) => ({ name: `dataset.million.memory.${filter}.${one}`, unit: 'bytes' }) as const),
  ...processes.map((one) => ({ name: `dataset.million.turn.${filter}.${one}`, unit: 'ms' }) as const),
];

export const millionRows: Measurement = {
  name: 'dataset.million',
  rows: [...filters.flatMap(rowsOfFilter), { name: 'dataset.million.tokenizer', unit: 's' }],
  turns: 1,
  compare: { 'dataset.million.start.on': 'dataset.million.tokenizer' },
  open: ({ quick }) => open(quick ? 2_000 : 1_000_000),
};

async function open(rows: number): Promise<Session> {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-bench-rows-'));
  const file = join(folder, 'rows.jsonl');
  await writeRows(file, rows, rowBytes);
  await saveTinyModel(join(folder, 'model'));
  writeFileSync(join(folder, 'recipe.yaml'), recipe);
  return {
    about: `${rows} rows of ${rowBytes} bytes, a tenth of them longer; SmolLM2's tokenizer`,
    async turn(): Promise<Values> {
      const off = await timeFirstJob(join(folder, 'recipe.yaml'), []);
      const tokenizer = await timeTokenizer(file, join(folder, 'model'));
      const on = await timeFirstJob(join(folder, 'recipe.yaml'), [
        'data.filter_overlong_prompts=true',
        'data.max_prompt_length=180',
      ]);
      return { ...valuesOf('off', off), ...valuesOf('on', on), 'dataset.million.tokenizer': tokenizer };
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The largest figures of each kind of process. */
function valuesOf(filter: (typeof filters)[number], { seconds, processes: found }: FirstJob): Values {
  const values = processes.flatMap((name) => {
    const own = found.filter((one) => one.name === name);
    return [
      [`dataset.million.memory.${filter}.${name}`, Math.max(...own.map(({ peakBytes }) => peakBytes))],
      [`dataset.million.turn.${filter}.${name}`, Math.max(...own.map(({ turns }) => turns[0]?.ms ?? 0))],
    ];
  });
  const processor = Math.max(...found.filter(({ name }) => name === 'run').map((one) => one.processorSeconds));
  return {
    [`dataset.million.start.${filter}`]: seconds,
    [`dataset.million.processor.${filter}`]: processor,
    ...(Object.fromEntries(values) as Values),
  };
}

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

/** A model whose output does not matter, with the vocabulary of a real tokenizer. */
async function saveTinyModel(folder: string): Promise<void> {
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
  const tensors = initialTensors(readDecoderSpec(config), 1, 0.02);
  const companions = join(packageRoot(), 'examples/02-smollm2-addition/smollm2');
  await saveHuggingFace(folder, { config, tensors, dtype: 'float32', companions });
}
