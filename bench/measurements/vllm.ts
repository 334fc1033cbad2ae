/**
 * vLLM through petrel, against bare vLLM with the same requests: tokens per second, and the time from weights in memory
 * to the first token that is sampled with them.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StateSource } from '../../core/ports/policy.ts';
import type { GenerateRequest, OwningSampler } from '../../core/ports/sampler.ts';
import { publishedBytes, publishedTensors } from '../../core/records/publications.ts';
import type { EngineEnvironment } from '../../infra/engines/environment.ts';
import { roundToBf16 } from '../../models/safetensors.ts';
import { vllmSamplers } from '../../workers/engine/engines/vllm/index.ts';
import { secondsUntil } from '../clock.ts';
import type { BenchSettings, Measurement, Session } from '../measurement.ts';
import { randomTokens } from '../model.ts';
import { saveSize } from '../saved-size.ts';
import { newTokens, sizeOf } from '../sizes.ts';
import type { Size } from '../sizes.ts';

const batch = 64;
const throughput = `vllm.R.b${batch}`;
const newWeights = 'vllm.R.newWeights';

export const throughVllm = (environment: EngineEnvironment): Measurement => ({
  name: 'vllm.R',
  rows: [
    { name: throughput, unit: 'tokens/s' },
    { name: newWeights, unit: 'ms' },
  ],
  turns: 5,
  open: (settings) => open(environment, settings),
  peerName: 'vllm',
  peer: ({ quick }) => ({
    ...sizeOf('R', quick),
    batch,
    new_tokens: newTokens,
    values: { [throughput]: 'throughput', [newWeights]: 'new_weights' },
  }),
});

async function open(environment: EngineEnvironment, { quick, precision, threads }: BenchSettings): Promise<Session> {
  const size = sizeOf('R', quick);
  const folder = mkdtempSync(join(tmpdir(), 'petrel-bench-vllm-'));
  await saveSize(folder, size);
  const options = { compute: precision, deterministic: false, threads } as const;
  const sampler = await vllmSamplers({ threads, ...environment }).sampler({ folder, head: 'tokens' }, options);
  await sampler.makeRoom({ maxSeqs: batch, maxModelLen: size.prompt + newTokens });
  await sampler.use({ type: 'folder', folder }, { format: 'F32', hash: 'blake3' });
  const format = precision === 'bf16' ? 'BF16' : 'F32';
  const publication = await publicationOf(sampler, format);
  const load = () => sampler.use(publication, { format, hash: 'blake3' });
  await load(); // the second load is compared with transformers, as the first one
  await made(sampler, requests(size, batch, newTokens));
  return {
    about: `${batch} prompts of ${size.prompt} tokens, ${newTokens} new tokens`,
    async turn() {
      const loading = await secondsUntil(async () => {
        await load();
        await made(sampler, requests(size, 1, 1));
      });
      const seconds = await secondsUntil(() => made(sampler, requests(size, batch, newTokens)));
      return { [throughput]: (batch * newTokens) / seconds, [newWeights]: 1000 * loading };
    },
    async close() {
      await sampler.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What a trainer would publish, in memory. */
async function publicationOf(sampler: OwningSampler, format: 'F32' | 'BF16'): Promise<StateSource> {
  if (sampler.readPublished === undefined) throw new Error('vLLM gives the weights that it has');
  const whole = new Uint8Array(publishedBytes(sampler.parameters, 'F32'));
  await sampler.readPublished('F32', 0, whole);
  const bytes = new Uint8Array(publishedBytes(sampler.parameters, format));
  for (const { dtype, start, end, firstByte, endByte } of publishedTensors(sampler.parameters, format)) {
    const values = new Float32Array(whole.buffer, 4 * start, end - start);
    const rounded = new Uint16Array(dtype === 'F32' ? 0 : values.length);
    if (dtype === 'BF16') roundToBf16(values, rounded);
    const stored = dtype === 'F32' ? values : rounded;
    bytes.subarray(firstByte, endByte).set(new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength));
  }
  return { type: 'published', format, read: async (sinkOf) => sinkOf(0, bytes.length)(bytes) };
}

const requests = ({ prompt, shape }: Size, count: number, tokens: number): GenerateRequest[] =>
  Array.from({ length: count }, (_, i) => ({
    prompt: randomTokens(prompt, shape.vocab_size, 1 + i),
    samples: [{ key: i + 1, random: { seed: [1, 2], draw: i, sample: 0, turn: 0 } }],
    sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    maxNewTokens: tokens,
    stopTokens: new Int32Array(0),
  }));

async function made(sampler: OwningSampler, asked: readonly GenerateRequest[]): Promise<void> {
  const wanted = asked.reduce((sum, { maxNewTokens }) => sum + maxNewTokens, 0);
  let count = 0;
  for await (const { tokens } of sampler.generate(asked)) count += tokens.length;
  if (count !== wanted) throw new Error(`expected ${wanted} tokens, vLLM made ${count}`);
}
