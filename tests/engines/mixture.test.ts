// @module-tag engines
/** Mixtures of experts on torch: their auxiliary loss, and what is said of their experts. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../core/at.ts';
import { metricInfo } from '../../core/metrics.ts';
import { packageRoot, petrelHome } from '../../infra/home.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { readDecoderShape } from '../../models/decoder-shape.ts';
import { saveHuggingFace } from '../../models/folder.ts';
import { familiesWithRouterLoss } from '../../models/mixtures.ts';
import { randomTensors } from '../../native/model/init.ts';
import { soundMetrics } from '../algorithm-recipes.ts';
import { InProcessLoop } from '../in-process-loop.ts';
import { torchHere } from './engines-here.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-mixture-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Line {
  readonly model: string;
  readonly outputs: readonly string[];
  readonly layers: number;
  readonly perLayer: readonly number[];
  readonly loss: number | null;
  readonly expected: number | null;
  readonly farthest: number;
  readonly again: boolean;
}

it('the auxiliary loss and the gradients are those of transformers, and a model without one says so', async () => {
  const { python = '' } = readEnvironment(petrelHome(), 'torch-cpu') ?? {};
  const script = join(packageRoot(), 'tests/engines/routing.py');
  const args = ['-I', '-B', script, join(packageRoot(), 'engines/torch'), folder];
  const { stdout } = await promisify(execFile)(python, args);
  const [families, ...lines] = stdout
    .split('\n')
    .filter((line) => /^[[{]/.test(line))
    .map((line) => JSON.parse(line) as unknown) as [readonly string[], ...Line[]];
  expect(new Set(families)).toEqual(familiesWithRouterLoss);
  expect(lines.map(({ model, layers }) => `${model} ${layers}`)).toEqual([
    'mixtral 4',
    'qwen2_moe 4',
    'qwen3_moe 3',
    'olmoe 4',
    'gpt_oss 4',
    'glm4_moe 3',
  ]);
  for (const { model, outputs, layers, perLayer, loss, expected, farthest, again } of lines) {
    const hasLoss = model !== 'glm4_moe';
    expect(outputs).toEqual(hasLoss ? ['expertTokens', 'routerLoss'] : ['expertTokens']);
    // 48 tokens, each to two experts.
    expect(perLayer).toEqual(Array.from({ length: layers }, () => 96));
    if (hasLoss) expect(loss).toBeCloseTo(expected ?? NaN, 5);
    expect(farthest).toBeLessThan(1e-5);
    expect(again).toBe(true);
  }
});

describe('a run of a tiny Qwen3 mixture, on two ranks', () => {
  const loop = new InProcessLoop(undefined, { engines: [torchHere()] });
  const model = join(folder, 'qwen3-moe');
  beforeAll(async () => {
    await loop.up();
    await saveMixture(model, loop.modelFolder);
  });
  afterAll(() => loop.remove());
  const trained = async (coefficient: number) => {
    const { iterations, weights } = await loop.completed({
      kind: 'sft',
      model: { path: model },
      trainer: { engine: 'torch', fsdp_size: 2 },
      actor: { router_aux_loss_coef: coefficient },
      deterministic: false,
    });
    soundMetrics(iterations);
    return { metrics: iterations.map(({ update }) => update.metrics), weights };
  };

  it('says how its experts were used, and learns what the weight of its auxiliary loss asks for', async () => {
    const [alone, weighted] = [await trained(0), await trained(1)];
    expect(Object.keys(at(weighted.metrics, 0)).filter((name) => metricInfo(name) === undefined)).toEqual([]);
    for (const [k, { 'actor/router_aux_loss': value, ...others }] of weighted.metrics.entries()) {
      const ofAlone = at(alone.metrics, k);
      const loss = Number(others['actor/loss']);
      expect(Number(others['actor/expert_load_max'])).toBeGreaterThan(1);
      expect(Number(others['actor/expert_load_min'])).toBeLessThan(1);
      expect(others['actor/idle_experts']).toBe(0);
      expect(Number(value)).toBeGreaterThan(1);
      // The first step of the first iteration has the weights that both began with.
      if (k === 0) expect(loss - Number(ofAlone['actor/loss'])).toBeCloseTo(Number(value), 1);
    }
    expect(at(weighted.weights, 0)).toBe(at(alone.weights, 0));
    expect(at(weighted.weights, -1)).not.toBe(at(alone.weights, -1));
  });
});

/** A mixture with random weights, and the tokenizer of another folder. */
async function saveMixture(path: string, companions: string): Promise<void> {
  const config = {
    architectures: ['Qwen3MoeForCausalLM'],
    model_type: 'qwen3_moe',
    ...{ hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 2 },
    ...{ head_dim: 16, vocab_size: 18, max_position_embeddings: 64, tie_word_embeddings: false },
    ...{ num_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 32, decoder_sparse_step: 1 },
    ...{ rms_norm_eps: 1e-6, rope_theta: 10000, hidden_act: 'silu', eos_token_id: 1, pad_token_id: 0 },
  };
  const { layers, rest } = readDecoderShape(config);
  const shapes = [...layers.flatMap(({ parameters }) => parameters), ...rest].flatMap(({ name, shape, experts }) =>
    Array.from({ length: experts?.count ?? 1 }, (_, e) => ({
      name: name.replace('.experts.0.', `.experts.${e}.`),
      shape,
    })),
  );
  const norms = new Map(shapes.flatMap(({ name }) => (name.endsWith('norm.weight') ? [[name, 1]] : [])));
  const tensors = randomTensors(shapes, norms, 1, 0.3);
  await saveHuggingFace(path, { config, tensors, dtype: 'float32', companions });
}
