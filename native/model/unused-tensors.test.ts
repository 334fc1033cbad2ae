import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readDecoderSpec } from './config.ts';
import { checkUnused } from './unused-tensors.ts';
import { type FloatTensor, openSafetensors, writeModelFiles } from '../../models/safetensors.ts';

const config = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 64,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  intermediate_size: 8,
  // Two pieces of 4 MiB in float32, one and a half in bfloat16.
  vocab_size: 40_000,
  tie_word_embeddings: true,
};
const spec = readDecoderSpec(config);
const table = 'model.embed_tokens.weight';
const shape = [config.vocab_size, config.hidden_size];
const size = config.vocab_size * config.hidden_size;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'unused-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function check(tensors: readonly FloatTensor[], options: object = {}, more: object = {}): Promise<void> {
  await writeModelFiles(folder, tensors, { dtype: 'F32', ...options });
  const source = await openSafetensors(folder);
  try {
    await checkUnused(source, spec, more);
  } finally {
    await source.close();
  }
}

const values = (change: readonly [number, number][] = []) => {
  const data = Float32Array.from({ length: size }, (_, i) => i % 97);
  for (const [at, value] of change) data[at] = value;
  return data;
};
const embedding: FloatTensor = { name: table, shape, data: values() };
const head = (data: Float32Array, own = shape): FloatTensor => ({ name: 'lm_head.weight', shape: own, data });

describe('a stored head of a tied model', () => {
  it('that repeats the embedding is read', async () => {
    await check([embedding, head(values())]);
  });

  it('that repeats the embedding in another shard is read', async () => {
    await check([embedding, head(values())], { maxShardBytes: size * 4 });
  });

  it.each([0, 1_500_000, size - 1])('that differs at element %d is refused, with what to type', async (at) => {
    await expect(check([embedding, head(values([[at, 1000]]))], { maxShardBytes: size * 4 })).rejects.toMatchObject({
      message: expect.stringContaining(
        `tie_word_embeddings is true, but lm_head.weight differs from ${table}, first at element ${at}`,
      ),
      hint: expect.stringContaining('set "tie_word_embeddings": false in config.json'),
    });
  });

  it('of another shape is refused', async () => {
    await expect(check([embedding, head(new Float32Array(64), [1, 64])])).rejects.toThrow('has the shape [1, 64]');
  });

  it('is left out where the model gets a new head', async () => {
    await check([embedding, head(values([[3, 1000]]))], {}, { newHead: true });
  });
});

describe('stored frequencies of rope', () => {
  const rope = spec.layers[0]?.mixer.rope ?? [];
  const stored = (data: readonly number[]): FloatTensor => ({
    name: 'model.layers.0.self_attn.rotary_emb.inv_freq',
    shape: [data.length],
    data: Float32Array.from(data),
  });

  it('that follow from config.json are read, also before they were scaled', async () => {
    await check([stored(rope)], { dtype: 'BF16' });
    await check([stored(rope.map((frequency) => frequency * 4))]);
  });

  it.each([
    ['of another rope_theta', rope.map((_, i) => 500_000 ** (-i / rope.length))],
    ['that are scaled where config.json says nothing', rope.map((frequency) => frequency / 4)],
    ['of another width', rope.slice(1)],
  ])('%s are refused', async (_, data) => {
    await expect(check([stored(data)])).rejects.toThrow('holds other frequencies than config.json gives');
  });
});
