import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ParameterInfo } from '../../core/parameters.ts';
import { readDecoderSpec, readValueSpec } from './config.ts';
import { type FloatTensor, openSafetensors, writeModelFiles } from '../../models/safetensors.ts';
import { type WeightsTarget, loadWeights } from './weights.ts';
import { saveHuggingFace } from '../../models/folder.ts';

const configJson = {
  architectures: ['Qwen3ForCausalLM'],
  model_type: 'qwen3',
  hidden_size: 8,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  head_dim: 4,
  num_key_value_heads: 1,
  intermediate_size: 12,
  vocab_size: 16,
  max_position_embeddings: 32,
  tie_word_embeddings: true,
  torch_dtype: 'float32',
};

function makeTrainer(
  fill: (i: number) => number,
  spec = readDecoderSpec(configJson),
): WeightsTarget & { weights: Float32Array; changed: number } {
  const parameters: ParameterInfo[] = [];
  let offset = 0;
  for (const { name, shape } of spec.tensors) {
    const size = shape.reduce((a, b) => a * b, 1);
    parameters.push({ name, shape, offset, size });
    offset += size;
  }
  const weights = Float32Array.from({ length: offset }, (_, i) => fill(i));
  return {
    spec,
    parameters,
    weights,
    changed: 0,
    write: (_, values, start) => weights.set(values, start),
    weightsChanged() {
      this.changed++;
    },
  };
}

const tensorsOf = ({ parameters, weights }: ReturnType<typeof makeTrainer>): FloatTensor[] =>
  parameters.map(({ name, shape, offset, size }) => ({ name, shape, data: weights.subarray(offset, offset + size) }));

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weights-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('model folders', () => {
  it.each([
    ['one file', undefined],
    ['shards', 1000],
  ])('are restored exactly in float32 (%s)', async (_, maxShardBytes) => {
    const from = makeTrainer((i) => Math.sin(i));
    const out = join(folder, 'model');
    await saveHuggingFace(out, {
      config: configJson,
      tensors: tensorsOf(from),
      dtype: 'float32',
      ...(maxShardBytes ? { maxShardBytes } : {}),
    });
    expect((await readdir(out)).includes('model.safetensors.index.json')).toBe(maxShardBytes !== undefined);
    const to = makeTrainer(() => 0);
    await loadWeights(out, to);
    expect(to.weights).toEqual(from.weights);
    expect(to.changed).toBe(1);
  });

  it.each([true, false])(
    'become a value model: the same decoder, and a head of its own (tied head: %s)',
    async (tied) => {
      const config = { ...configJson, tie_word_embeddings: tied };
      const from = makeTrainer((i) => Math.sin(i), readDecoderSpec(config));
      const out = join(folder, 'model');
      await saveHuggingFace(out, { config, tensors: tensorsOf(from), dtype: 'float32' });
      const to = makeTrainer(() => 7, readValueSpec(config));
      await expect(loadWeights(out, to)).rejects.toThrow('tensor score.bias is missing');
      await loadWeights(out, to, { newHead: true });
      const [source, target] = [from, to].map((one) => new Map(tensorsOf(one).map(({ name, data }) => [name, data])));
      for (const [name, data] of target ?? [])
        expect(data, name).toEqual(/^score\./.test(name) ? new Float32Array(data.length).fill(7) : source?.get(name));
      expect([...(target ?? new Map()).keys()]).toContain('score.weight');
    },
  );

  it('round to the nearest bfloat16 and carry tokenizer files along', async () => {
    const from = makeTrainer((i) => (i + 1) / 7);
    await writeFile(join(folder, 'tokenizer.json'), '{}');
    const out = join(folder, 'bf16');
    await saveHuggingFace(out, {
      config: configJson,
      tensors: tensorsOf(from),
      dtype: 'bfloat16',
      companions: folder,
    });
    const to = makeTrainer(() => 0);
    await loadWeights(out, to);
    for (const [i, value] of to.weights.entries())
      expect(Math.abs(value / (from.weights[i] as number) - 1)).toBeLessThanOrEqual(2 ** -8);
    expect(JSON.parse(await readFile(join(out, 'config.json'), 'utf8'))).toMatchObject({ torch_dtype: 'bfloat16' });
    expect(await readdir(out)).toContain('tokenizer.json');
    await expect(saveHuggingFace(out, { config: configJson, tensors: [], dtype: 'float32' })).rejects.toThrow(
      /not empty/,
    );
  });

  it.each([NaN, Infinity, -Infinity])('are refused with a weight of %s, by name', async (broken) => {
    const from = makeTrainer((i) => (i === 5 ? broken : Math.sin(i)));
    await writeModelFiles(folder, tensorsOf(from), { dtype: 'F32' });
    const first = from.parameters[0]?.name;
    await expect(
      loadWeights(
        folder,
        makeTrainer(() => 0),
      ),
    ).rejects.toThrow(`tensor ${first} must hold finite numbers, found ${broken} at element 5`);
  });

  it('name the tensor that is missing, misshapen or unknown', async () => {
    const trainer = makeTrainer((i) => i);
    const all = tensorsOf(trainer);
    const write = (tensors: typeof all): Promise<unknown> => writeModelFiles(folder, tensors, { dtype: 'F32' });
    await write(all.slice(1));
    await expect(loadWeights(folder, trainer)).rejects.toThrow(
      'tensor model.embed_tokens.weight is missing: expected shape [16, 8]',
    );
    await write(all.map((tensor) => (tensor.name === 'model.norm.weight' ? { ...tensor, shape: [2, 4] } : tensor)));
    await expect(loadWeights(folder, trainer)).rejects.toThrow(
      'tensor model.norm.weight: expected shape [8], found [2, 4]',
    );
    const stray = { name: 'model.vision.weight', shape: [1], data: new Float32Array(1) };
    await write([...all, stray]);
    await expect(loadWeights(folder, trainer)).rejects.toThrow(
      'belong to no parameter of this architecture: model.vision.weight',
    );
    const rope = Float32Array.from(trainer.spec.layers[0]?.mixer.rope ?? []);
    const frequencies = { name: 'model.layers.0.self_attn.rotary_emb.inv_freq', shape: [rope.length], data: rope };
    await write([...all, frequencies]);
    await loadWeights(folder, trainer);
  });

  it.each([
    ['module.', 'the names begin with "module."'],
    ['_orig_mod.', 'the names begin with "_orig_mod."'],
    ['language_model.', 'the names begin with "language_model."'],
    [undefined, 'the names lack "model."'],
  ])('whose tensors have the names of a wrapper (%s) are refused with what to do', async (prefix, hint) => {
    const trainer = makeTrainer((i) => i);
    const renamed = tensorsOf(trainer).map((one) => ({
      ...one,
      name: prefix === undefined ? one.name.replace(/^model\./, '') : prefix + one.name,
    }));
    await writeModelFiles(folder, renamed, { dtype: 'F32' });
    await expect(loadWeights(folder, trainer)).rejects.toMatchObject({ hint: expect.stringContaining(hint) });
  });

  it('with weights twice, a shard that no index names, or an adapter are refused', async () => {
    const trainer = makeTrainer((i) => i);
    await writeModelFiles(folder, tensorsOf(trainer), { dtype: 'F32', maxShardBytes: 1000 });
    const shard = (await readdir(folder)).find((name) => name.startsWith('model-')) ?? '';
    await writeFile(join(folder, 'model-00099-of-00099.safetensors'), await readFile(join(folder, shard)));
    await expect(openSafetensors(folder)).rejects.toThrow('model-00099-of-00099.safetensors is not in');
    await rm(join(folder, 'model-00099-of-00099.safetensors'));
    await writeFile(join(folder, 'model.safetensors'), await readFile(join(folder, shard)));
    await expect(openSafetensors(folder)).rejects.toThrow('there are weights in model.safetensors and in the shards');
    await rm(join(folder, 'model.safetensors'));
    await writeFile(join(folder, 'adapter_config.json'), '{}');
    await expect(openSafetensors(folder)).rejects.toThrow('holds a low-rank adapter');
  });

  it('give clear errors for a bad folder or index', async () => {
    await expect(openSafetensors(join(folder, 'nowhere'))).rejects.toThrow(/no such model folder/);
    await writeFile(join(folder, 'pytorch_model.bin'), '');
    await expect(openSafetensors(folder)).rejects.toThrow(/expected model.safetensors.*found pytorch_model.bin/);
    await writeFile(
      join(folder, 'model.safetensors.index.json'),
      JSON.stringify({ weight_map: { a: '../x.safetensors' } }),
    );
    await expect(openSafetensors(folder)).rejects.toThrow(/weight_map.a must name/);
    await writeFile(
      join(folder, 'model.safetensors.index.json'),
      JSON.stringify({ weight_map: { a: 'x.safetensors' } }),
    );
    await expect(openSafetensors(folder)).rejects.toThrow(/x.safetensors: cannot be opened/);
  });
});
