/** Samplers over HTTP pass the contract of samplers, against servers of the tests (tests/sampling-server.ts). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { SamplingEngine } from '../../core/ports/engines.ts';
import type { SamplingSettings } from '../../core/sampling-settings.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { httpSamplers } from '../../workers/engine/engines/http/index.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../../workers/engine/engines/native/index.ts';
import { saveRandomModel } from '../random-model.ts';
import { SamplingServerUnderTest } from '../sampling-server.ts';
import type { ServerShape } from '../sampling-server.ts';
import { samplerContract } from './engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-http-sampler-'));
const model = { folder: join(folder, 'model'), head: 'tokens' } as const;
const sizes = {
  hidden_size: 24,
  intermediate_size: 36,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 41,
  max_position_embeddings: 2048,
};
const servers = new Map<string, SamplingServerUnderTest>();

beforeAll(() => saveRandomModel(model.folder, sizes, 0.3));
afterAll(async () => {
  for (const server of servers.values()) await server.close();
  rmSync(folder, { recursive: true });
});

/** The engine, with a server of this shape that starts when it is first asked for. */
function samplersOf(name: string, shape: ServerShape): SamplingEngine {
  const engine = httpSamplers(() => {}, {});
  return {
    ...engine,
    async sampler(ref, options) {
      const server = servers.get(name) ?? (await SamplingServerUnderTest.start(model.folder, shape));
      servers.set(name, server);
      return engine.sampler(ref, options, server.named(join(folder, 'weights')));
    },
  };
}

const native = nativeEngines(new MemoryPlan(machineBytes()));
const isPenalised = ({ repetitionPenalty }: SamplingSettings) => repetitionPenalty !== 1;

const shapes: readonly (readonly [string, ServerShape, (settings: SamplingSettings) => boolean])[] = [
  // vLLM gives one log-prob: after filters, or before the temperature.
  ['a server like vLLM', { api: 'vllm' }, ({ temperature }) => temperature === 0],
  ['one without --enable-scale-out', { api: 'vllm', completionsOnly: true }, ({ temperature }) => temperature === 0],
  ['one with raw log-probs', { api: 'vllm', raw: true }, ({ temperature }) => temperature === 0],
  ['a server like SGLang', { api: 'sglang' }, (settings) => !isPenalised(settings)],
  ['one that streams what is new', { api: 'sglang', incremental: true }, (settings) => !isPenalised(settings)],
];

for (const [name, shape, reports] of shapes) samplerContract(name, native, samplersOf(name, shape), model, reports);
