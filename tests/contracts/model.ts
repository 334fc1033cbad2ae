/** A small model as a folder with nothing but its config.json: tests load random states into it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModelRef } from '../../core/ports/engines.ts';
import { createAdapter } from '../../models/lora.ts';
import { llama, saveRandomModel } from '../random-model.ts';
import type { ModelSizes } from '../random-model.ts';

const sizes: ModelSizes = {
  hidden_size: 24,
  intermediate_size: 36,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 41,
  max_position_embeddings: 2048,
};

const folders = mkdtempSync(join(tmpdir(), 'petrel-engine-contract-'));
process.once('exit', () => rmSync(folders, { recursive: true, force: true }));
let count = 0;

/** A new adapter of a model with random weights, which lies in the folder `base` beside it. */
export async function savedAdapter(some: Partial<ModelSizes> = {}): Promise<ModelRef> {
  const folder = join(folders, String(count++));
  await saveRandomModel(join(folder, 'base'), { ...sizes, ...some }, 0.3);
  const settings = { rank: 3, alpha: 4, targets: 'all-linear', seed: 1, task: 'CAUSAL_LM' } as const;
  for (const [name, bytes] of Object.entries(await createAdapter(join(folder, 'base'), 'base', settings)))
    writeFileSync(join(folder, name), bytes);
  return { folder, head: 'tokens' };
}

/** `more`: other fields of its config.json. */
export function savedModel(some: Partial<ModelSizes> = {}, more: object = {}): ModelRef {
  const folder = join(folders, String(count++));
  mkdirSync(folder);
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...llama, ...sizes, ...some, ...more }));
  return { folder, head: 'tokens' };
}
