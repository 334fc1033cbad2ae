// @module-tag long
/**
 * The fixtures of tests/imports, on example 01's model and rows: each is imported, planned, and run for two iterations,
 * all on one stack.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStack } from '../../api/index.ts';
import type { Stack } from '../../api/index.ts';
import { importRecipe } from '../../api/recipes/import/import-recipe.ts';
import type { ImportInputs } from '../../api/recipes/import/read-source.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { packageRoot } from '../../infra/home.ts';
import { temporaryHome } from '../servers.ts';

const temporary = temporaryHome();
const folder = join(temporary.home, 'work');
const fixtures = join(packageRoot(), 'tests/imports');
const example = join(packageRoot(), 'examples/01-arithmetic-grpo');

let stack: Stack;
beforeAll(async () => {
  mkdirSync(folder);
  cpSync(fixtures, folder, { recursive: true });
  cpSync(join(example, 'base'), join(folder, 'base'), { recursive: true });
  writeFileSync(join(folder, 'train.jsonl'), rows(32));
  stack = openStack({ home: temporary.home, cwd: folder, env: process.env });
  await stack.up();
});
afterAll(async () => {
  await stack?.down();
  temporary.remove();
});

/** Rows of the example with a data source that verl has a scorer for. */
function rows(count: number): string {
  const lines = readFileSync(join(example, 'train.jsonl'), 'utf8').split('\n').slice(0, count);
  return lines
    .map((line) => `${JSON.stringify({ ...(JSON.parse(line) as object), data_source: 'openai/gsm8k' })}\n`)
    .join('');
}

interface Fixture {
  readonly file: string;
  readonly inputs?: Partial<ImportInputs>;
  /** Keys of the recipe that show the construct which the fixture is about. */
  readonly keys: Tree;
}

const cases: readonly Fixture[] = [
  {
    file: 'arrays.sh',
    inputs: { words: ['actor_rollout_ref.rollout.n=2', '+data.seed=7'], env: new Map([['LR', '2e-4']]) },
    keys: { rollout: { n: 2 }, data: { train_files: ['./train.jsonl'], seed: 7 }, actor: { optim: { lr: 2e-4 } } },
  },
  {
    file: 'continued.sh',
    keys: {
      name: 'continued-lines',
      model: { path: './base' },
      data: { max_response_length: 6 },
      actor: { ppo_max_token_len_per_gpu: 28 },
    },
  },
  { file: 'critic.sh', keys: { actor: { use_kl_loss: true }, critic: { optim: { lr: 1e-3 } } } },
  {
    file: 'functions.sh',
    inputs: { env: new Map([['DEVICE', 'gpu']]) },
    keys: { data: { train_files: './train.jsonl', train_batch_size: 8 }, trainer: { total_training_steps: 2 } },
  },
  {
    file: 'signs.sh',
    keys: {
      actor: { optim: { lr: 1e-4 }, clip_ratio_high: 0.28 },
      data: { apply_chat_template_kwargs: { enable_thinking: false } },
      rollout: { n: 4, val_kwargs: { temperature: 0.6, top_p: 0.95, do_sample: true, n: 1 } },
    },
  },
  {
    file: 'former-names.sh',
    inputs: { call: 2 },
    keys: {
      actor: { optim: { lr_scheduler_type: 'cosine', lr_warmup_steps: 1 } },
      reward: { custom_reward_function: { path: './score.py' }, reward_model: { enable: false } },
    },
  },
  {
    file: 'overrides.txt',
    keys: { data: { train_files: ['./train.jsonl', './train.jsonl'] }, actor: { ppo_epochs: 2 } },
  },
  { file: 'hydra-overrides.yaml', keys: { actor: { policy_loss: { loss_mode: 'gpg' } } } },
  {
    file: 'nested.yaml',
    keys: {
      name: 'sums-nested',
      actor: { clip_ratio_high: 3e-4 },
      rollout: { n: 4 },
      model: { compute_dtype: 'fp32' },
    },
  },
  { file: 'composed.yaml', keys: { rollout: { n: 4 }, actor: { optim: { lr: 1e-4, betas: [0.9, 0.99] } } } },
];

describe('a file of verl is imported, planned and run for two iterations:', () => {
  it.each(cases)('$file', async ({ file, inputs = {}, keys }) => {
    const imported = importRecipe(file, { env: new Map(), words: [], ...inputs }, folder);
    expect(imported.tree).toMatchObject(keys);
    expect(imported.problems).toEqual([]);
    const recipe = `${file}.recipe.yaml`;
    writeFileSync(join(folder, recipe), imported.text);
    const plan = await stack.plan({ recipe });
    expect(plan.problems).toEqual([]);
    expect(plan.checks.filter(({ status }) => status === 'failed')).toEqual([]);
    const run = await stack.start({ recipe });
    expect(await run.follow(() => undefined)).toBe('completed');
    expect((await run.metrics()).filter(({ metrics }) => 'training/skipped_steps' in metrics)).toHaveLength(2);
  });
});
