// @module-tag engines
/** Ranks that share tokens, matrices or experts: they agree with Hugging Face, and with ranks that share nothing. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import type { Division } from '../../core/division.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { packageRoot, petrelHome } from '../../infra/home.ts';
import { modelsEvaluator } from '../conformance/families/models.ts';
import { loadGolden } from '../conformance/load.ts';
import { runFile } from '../conformance/run.ts';
import { engineContract } from '../contracts/engine.ts';
import { savedModel } from '../contracts/model.ts';
import { hfHere, torchHere } from './engines-here.ts';

const files = await loadGolden(fileURLToPath(new URL('../golden', import.meta.url)), ['models']);
const options = { compute: 'fp32', deterministic: true, threads: 2 } as const;

describe.each<readonly [Division, number, readonly string[]]>([
  [{ sequence: 2 }, 2, ['llama-tied', 'qwen3', 'qwen2-score', 'qwen2-value', 'deepseek_v3', 'qwen3_moe']],
  [{ tensor: 2 }, 2, ['qwen2', 'llama-rope3', 'qwen2-score', 'gemma2', 'deepseek_v3', 'qwen3_moe']],
  [{ experts: 2 }, 2, ['mixtral', 'deepseek_v3', 'qwen3_moe']],
  [{ sequence: 2, tensor: 2 }, 4, ['qwen3', 'qwen3_moe']],
  [{ sequence: 2, experts: 2 }, 4, ['qwen3_moe']],
  [{ tensor: 2, experts: 2 }, 4, ['mixtral']],
  [{ offload: true }, 2, ['llama-tied', 'qwen3_moe']],
])('torch agrees with Hugging Face, divided by %o', (division, ranks, families) => {
  const models = modelsEvaluator(torchHere(), hfHere(), { ...options, ranks, division }, () => true);
  afterAll(() => models.close());

  it.each(families)('%s', async (family) => {
    const file = files.find(({ label }) => label === `models/${family}`);
    if (file === undefined) throw new Error(`there is no family ${family}`);
    const { cases } = await runFile(file, [models]);
    expect(cases.length).toBeGreaterThan(3);
    const failed = cases.filter(({ status }) => status === 'failed');
    expect(failed.map(({ name, reason }) => `${name}: ${reason}`)).toEqual([]);
  });
});

describe.each<Division>([{ sequence: 2 }, { tensor: 2 }])('divided by %o', (division) =>
  engineContract('torch', torchHere(), hfHere(), { ranks: 2, division }),
);

it.each([1, 2])(
  'what a rank has of a state is what its indices say, whatever bytes are asked for (seed %i)',
  async (seed) => {
    const { python = '' } = readEnvironment(petrelHome(), 'torch-cpu') ?? {};
    const script = join(packageRoot(), 'tests/engines/segments.py');
    const args = ['-I', '-B', script, join(packageRoot(), 'engines/torch'), String(seed)];
    const { stdout } = await promisify(execFile)(python, args);
    expect(stdout).toContain('compared 2000');
  },
);

it('all ranks compute the same layers again, and every gradient has the same bits', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-divided-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const { python = '' } = readEnvironment(petrelHome(), 'torch-cpu') ?? {};
  const script = join(packageRoot(), 'tests/engines/divided.py');
  const args = ['-I', '-B', script, join(packageRoot(), 'engines/torch'), folder];
  const { stdout } = await promisify(execFile)(python, args);
  const lines = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as unknown);
  expect(lines).toHaveLength(6);
  // Four layers, of which the first is always kept.
  for (const line of lines) expect(line).toMatchObject({ again: [0, 3, 3], equal: true, moved: true });
});

describe('a model that does not divide so is refused', () => {
  const refused = async (model: object, division: Division) => {
    const engine = torchHere().open(savedModel({}, model), { ...options, ranks: 2, division, trainable: true });
    return engine.then(
      (made) => made.close().then(() => 'it was opened'),
      (error: unknown) => String((error as Error).message),
    );
  };
  it.each<readonly [object, Division, string]>([
    [
      { num_attention_heads: 3, num_key_value_heads: 3 },
      { sequence: 2 },
      'trainer.ulysses_sequence_parallel_size=2 does not divide the 3 heads and 3 heads of keys',
    ],
    [
      { num_key_value_heads: 1 },
      { tensor: 2 },
      'trainer.tensor_model_parallel_size=2 does not divide the 1 heads of keys and values of a llama',
    ],
    [{}, { experts: 2 }, 'transformers does not divide a LlamaForCausalLM'],
    [
      { architectures: ['Gemma2ForCausalLM'], model_type: 'gemma2', head_dim: 6 },
      { sequence: 2 },
      'a Gemma2ForCausalLM attends by a mask of the whole pack, so its tokens cannot be divided',
    ],
  ])('%o by %o', async (model, division, message) => {
    expect(await refused(model, division)).toContain(message);
  });
});
