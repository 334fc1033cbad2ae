// @module-tag engines
/** A server of vLLM that somebody else runs: the contract of samplers, and its new weights. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SamplingEngine } from '../../core/ports/engines.ts';
import type { SamplingServer } from '../../core/sampling-server.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { httpSamplers } from '../../workers/engine/engines/http/index.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../../workers/engine/engines/native/index.ts';
import { samplerContract } from '../contracts/engine.ts';
import { saveRandomModel } from '../random-model.ts';
import { startVllm } from './vllm-serve.ts';
import type { VllmServe } from './vllm-serve.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-vllm-server-'));
const model = { folder: join(folder, 'model'), head: 'tokens' } as const;
// vLLM's attention on a processor knows no head of fewer than 32 values.
const sizes = {
  hidden_size: 64,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  vocab_size: 41,
  max_position_embeddings: 64,
  tie_word_embeddings: false,
};
let server: VllmServe;
const named = ({ url } = server): SamplingServer => ({
  api: 'vllm',
  url,
  weightsFolder: join(folder, 'weights'),
  timeoutMs: 300_000,
});

beforeAll(async () => {
  await saveRandomModel(model.folder, sizes, 0.3);
  server = await startVllm(model.folder, ['--enable-scale-out', '--logprobs-mode', 'processed_logprobs']);
});
afterAll(async () => {
  await server?.close();
  rmSync(folder, { recursive: true });
});

const native = nativeEngines(new MemoryPlan(machineBytes()));
const engine = httpSamplers(() => {}, {});
const served: SamplingEngine = { ...engine, sampler: (ref, options) => engine.sampler(ref, options, named()) };

samplerContract('vllm serve', native, served, model, ({ temperature }) => temperature === 0);

const options = { compute: 'fp32', deterministic: false, threads: 1 } as const;

it('says what has sampled', async () => {
  const sampler = await served.sampler(model, options);
  expect(sampler.sampledBy).toMatch(/^vllm \d+\.\d+\.\d+.*, model \//);
  await sampler.close();
});

describe('another server, which samples by /v1/completions and has a tied head', () => {
  const tied = { folder: join(folder, 'tied'), head: 'tokens' } as const;
  let other: VllmServe;
  beforeAll(async () => {
    await saveRandomModel(tied.folder, { ...sizes, tie_word_embeddings: true }, 0.3);
    other = await startVllm(tied.folder, []);
  });
  afterAll(() => other?.close());

  it('is refused: vLLM on a processor keeps the head when it gets new weights', async () => {
    const sampler = await engine.sampler(tied, options, named(other));
    await expect(
      sampler.use({ type: 'folder', folder: tied.folder }, { format: 'F32', hash: 'blake3' }),
    ).rejects.toMatchObject({ code: 'WrongServer', hint: expect.stringContaining('tie_word_embeddings: false') });
    await sampler.close();
  });
});
