/** New adapters, adapters of others, and weights with an adapter in them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adapterLayers, checkAdapter, createAdapter, mergedTensors, readLoraConfig, withBase } from '../lora.ts';
import { decodeSafetensors, gathered, openSafetensors, writeSafetensors } from '../safetensors.ts';
import { scaleOf } from './config.ts';

const shapes: Readonly<Record<string, readonly number[]>> = {
  'model.embed_tokens.weight': [11, 4],
  'model.layers.0.self_attn.q_proj.weight': [6, 4],
  'model.layers.0.self_attn.q_proj.bias': [6],
  'model.layers.0.mlp.gate.weight': [3, 4],
  'model.layers.0.mlp.gate_proj.weight': [5, 4],
  'model.layers.0.mlp.experts.1.gate_proj.weight': [5, 4],
  'model.layers.0.input_layernorm.weight': [4],
  'model.layers.1.self_attn.q_proj.weight': [6, 4],
  'lm_head.weight': [11, 4],
};
const settings = { rank: 2, alpha: 3, targets: 'all-linear', seed: 7, task: 'CAUSAL_LM' } as const;
const folder = mkdtempSync(join(tmpdir(), 'petrel-lora-'));
afterAll(() => rmSync(folder, { recursive: true }));
const base = folder;

beforeAll(async () => {
  const tensors = Object.entries(shapes).map(([name, shape]) => {
    const count = shape.reduce((product, size) => product * size, 1);
    return { name, shape, data: Float32Array.from({ length: count }, (_, i) => i / 8) };
  });
  await writeSafetensors(join(base, 'model.safetensors'), tensors, 'F32');
});

async function adapter(some: object = {}): Promise<string> {
  const own = mkdtempSync(join(folder, 'adapter-'));
  for (const [name, bytes] of Object.entries(await createAdapter(base, '..', { ...settings, ...some })))
    writeFileSync(join(own, name), bytes);
  return own;
}

const pathsOf = async (targets: string | readonly string[]) =>
  (await adapterLayers(base, targets)).map(({ path }) => path.replace('model.layers.', ''));

describe('a new adapter', () => {
  it('has the linear layers of the blocks, without routers and experts, or those that are named', async () => {
    expect(await pathsOf('all-linear')).toEqual(['0.mlp.gate_proj', '0.self_attn.q_proj', '1.self_attn.q_proj']);
    expect(await pathsOf(['q_proj'])).toEqual(['0.self_attn.q_proj', '1.self_attn.q_proj']);
    expect(await pathsOf('gate_proj')).toEqual(['0.mlp.gate_proj']);
    expect(await pathsOf(String.raw`model\.layers\.1\..*`)).toEqual(['1.self_attn.q_proj']);
  });

  it.each([
    [['k_proj', 'q_proj'], 'no linear layer of', 'gate_proj, q_proj', 'model.target_modules=q_proj'],
    ['.*nothing', 'no linear layer of', 'gate_proj, q_proj', 'model.target_modules=all-linear'],
  ])('of layers that are not there is refused: %j', async (targets, said, names, hint) => {
    const error = await adapterLayers(base, targets).then(
      () => undefined,
      (caught: Error & { hint?: string }) => caught,
    );
    expect(error?.message).toContain(said);
    expect(error?.message).toContain(names);
    expect(error?.hint).toContain(hint);
  });

  it('of no layer at all is refused', async () => {
    await expect(adapterLayers(base, [])).rejects.toThrow(/no layer of .* is named/);
  });

  it('of a broken regular expression is refused', async () => {
    await expect(adapterLayers(base, '(')).rejects.toThrow(/is no regular expression/);
  });

  it('follows from the seed: A within ±1 / √in and never the same in two layers, B zero', async () => {
    const [one, same, other] = [
      await createAdapter(base, '..', settings),
      await createAdapter(base, '..', settings),
      await createAdapter(base, '..', { ...settings, seed: 8 }),
    ];
    const file = 'adapter_model.safetensors';
    expect(one[file]).toEqual(same[file]);
    expect(one[file]).not.toEqual(other[file]);
    const { tensors } = decodeSafetensors(one[file] as Uint8Array);
    const values = (layer: string, part: string) =>
      tensors.get(`base_model.model.model.layers.${layer}.lora_${part}.weight`)?.data as Float32Array;
    expect(values('0.self_attn.q_proj', 'A')).toHaveLength(8);
    expect(values('0.self_attn.q_proj', 'A').every((value) => Math.abs(value) <= 0.5 && value !== 0)).toBe(true);
    expect(values('0.self_attn.q_proj', 'A')).not.toEqual(values('1.self_attn.q_proj', 'A'));
    expect(values('0.self_attn.q_proj', 'B')).toEqual(new Float32Array(12));
  });
});

describe('an adapter of somebody else', () => {
  it('is counted, and goes on beside another base', async () => {
    const own = await adapter();
    expect(await checkAdapter(own, base)).toEqual({ rank: 2, layers: 3, parameters: 2 * (9 + 10 + 10) });
    expect(JSON.parse(new TextDecoder().decode(await withBase(own, '../elsewhere')))).toMatchObject({
      base_model_name_or_path: '../elsewhere',
      r: 2,
      lora_alpha: 3,
    });
  });

  it('of another model is refused with the tensor and both shapes', async () => {
    const other = mkdtempSync(join(folder, 'other-'));
    const tensor = { name: 'model.layers.0.self_attn.q_proj.weight', shape: [6, 8], data: new Float32Array(48) };
    await writeSafetensors(join(other, 'model.safetensors'), [tensor], 'F32');
    await expect(checkAdapter(await adapter(), other)).rejects.toThrow(/has no layer model\.layers\.0\.mlp\.gate_proj/);
    await expect(checkAdapter(await adapter({ targets: String.raw`.*\.0\..*q_proj` }), other)).rejects.toThrow(
      /lora_A\.weight must have the shape \[2, 8\], found \[2, 4\]/,
    );
  });

  const path = 'base_model.model.model.layers.0.self_attn.q_proj';
  const tensor = (name: string, shape: readonly number[]) => ({
    ...{ name, shape, data: new Float32Array(shape.reduce((product, size) => product * size, 1)) },
  });
  it.each([
    ['a layer without its B', [tensor(`${path}.lora_A.weight`, [2, 4])], /lora_B\.weight must have .* no such tensor/],
    ['another rank', [tensor(`${path}.lora_A.weight`, [3, 4]), tensor(`${path}.lora_B.weight`, [6, 3])], /\[2, 4\]/],
    ['a head', [tensor('base_model.model.score.weight', [1, 4])], /score\.weight is no A or B/],
    ['an embedding', [tensor('base_model.model.model.embed_tokens.lora_embedding_A', [2, 4])], /is no A or B/],
    ['the output head', [tensor('base_model.model.lm_head.lora_A.weight', [2, 4])], /lm_head.* is no A or B/],
    ['nothing', [], /no tensor of an adapter/],
  ])('with %s is refused', async (_, tensors, said) => {
    const own = await adapter();
    await writeSafetensors(join(own, 'adapter_model.safetensors'), tensors, 'F32');
    await expect(checkAdapter(own, base)).rejects.toThrow(said);
  });

  it.each([
    [{ peft_type: 'IA3' }, /peft_type must be LORA/],
    [{ r: 0 }, /r must be a positive number/],
    [{ use_dora: true }, /use_dora must be off/],
    [{ modules_to_save: ['lm_head'] }, /modules_to_save must be off/],
    [{ bias: 'all' }, /bias must be none/],
    [{ init_lora_weights: 'pissa_niter_4' }, /init_lora_weights must be one that leaves the base/],
    [{ rank_pattern: { q_proj: 'two' } }, /rank_pattern must be an object of numbers/],
  ])('with the config %j is refused', async (some, said) => {
    const own = mkdtempSync(join(folder, 'config-'));
    writeFileSync(
      join(own, 'adapter_config.json'),
      JSON.stringify({ peft_type: 'LORA', r: 2, lora_alpha: 2, ...some }),
    );
    await expect(readLoraConfig(own)).rejects.toThrow(said);
  });
});

describe('the scale of a layer', () => {
  const config = {
    base: '',
    rank: 4,
    alpha: 8,
    rankStabilised: false,
    ranks: { q_proj: 2 },
    alphas: { '0.q_proj': 3 },
  };
  it.each([
    ['layers.1.v_proj', {}, 2],
    ['layers.1.q_proj', {}, 4],
    ['layers.0.q_proj', {}, 1.5],
    ['layers.10.q_proj', {}, 4],
    ['layers.1.v_proj', { rankStabilised: true }, 4],
  ])('%s %j', (layer, some, scale) => expect(scaleOf({ ...config, ...some }, layer)).toBe(scale));
});

describe('weights with an adapter in them', () => {
  it('are W + scale · B · A, and all others those of the base', async () => {
    const files = await openSafetensors(base);
    const layer = 'model.layers.0.self_attn.q_proj';
    const value = fc.float({ min: -4, max: 4, noNaN: true });
    await fc.assert(
      fc.asyncProperty(
        fc.array(value, { minLength: 8, maxLength: 8 }),
        fc.array(value, { minLength: 12, maxLength: 12 }),
        async (a, b) => {
          const merged = mergedTensors(files, await readLoraConfig(await adapter()), [
            { name: `base_model.model.${layer}.lora_A.weight`, shape: [2, 4], data: Float32Array.from(a) },
            { name: `base_model.model.${layer}.lora_B.weight`, shape: [6, 2], data: Float32Array.from(b) },
          ]);
          for (const { name, data } of await gathered(merged))
            for (const [i, found] of data.entries()) {
              const [out, column] = [Math.floor(i / 4), i % 4];
              const product = [0, 1].reduce((sum, k) => sum + (b[2 * out + k] ?? 0) * (a[4 * k + column] ?? 0), 0);
              expect(found).toBeCloseTo(i / 8 + (name === `${layer}.weight` ? 1.5 * product : 0), 4);
            }
        },
      ),
      { numRuns: 10 },
    );
    const stray = { name: 'base_model.model.none.lora_A.weight', shape: [2, 4], data: new Float32Array(8) };
    const config = await readLoraConfig(await adapter());
    expect(() => mergedTensors(files, config, [stray])).toThrow(/no layer of/);
    await files.close();
  });
});
