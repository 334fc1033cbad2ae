// @module-tag engines
/**
 * Compares the memory that plans give the processes of torch, hf and vLLM with the peaks that they reach, beside what
 * Python and its libraries take: loading, a pass and a step, with all weights and with an adapter; samples.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { plansOf } from '../../api/engine-plans.ts';
import type { ProcessWanted } from '../../core/ports/engine-plans.ts';
import type { ModelRef, SamplingEngine } from '../../core/ports/engines.ts';
import type { SamplerRoom } from '../../core/ports/sampler.ts';
import type { ComputeType } from '../../core/parameters.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { batchOf } from '../../native/testing/decoders.ts';
import { drain, learn } from '../contracts/engine.ts';
import { savedAdapter } from '../contracts/model.ts';
import { saveRandomModel } from '../random-model.ts';
import type { ModelSizes } from '../random-model.ts';
import { hfHere, torchHere, vllmHere } from './engines-here.ts';

/** 34 million parameters; with packs whose activations are more. */
const sizes: ModelSizes = {
  hidden_size: 512,
  intermediate_size: 1536,
  num_hidden_layers: 8,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  vocab_size: 16384,
  max_position_embeddings: 2048,
};
const lengths = [700, 800, 548];
const tokens = lengths.reduce((sum, length) => sum + length, 0);
const room = { maxSeqs: 64, maxModelLen: 96 };

/**
 * Largest allowed factor between plan and peak, in both directions. A peak has what the C library's heap keeps between
 * tensors that are freed, too: most with an adapter.
 */
const factor = 1.5;

const folder = mkdtempSync(join(tmpdir(), 'petrel-rank-memory-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const large: ModelRef = { folder: join(folder, 'large'), head: 'tokens' };
const tiny: ModelRef = { folder: join(folder, 'tiny'), head: 'tokens' };
beforeAll(async () => {
  await saveRandomModel(large.folder, sizes, 0.02);
  const heads = { hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1 };
  await saveRandomModel(tiny.folder, { ...sizes, ...heads, vocab_size: 41, num_hidden_layers: 1 }, 0.02);
});

const peakBytes = ({ pid }: ChildProcess): number =>
  Number(/^VmHWM:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

/** The largest peak of a rank when the model is loaded and learns twice. */
async function peakOfTrainer(model: ModelRef, compute: ComputeType, ranks: number, pack = lengths): Promise<number> {
  const started: ChildProcess[] = [];
  const torch = torchHere({ onStart: (child) => void started.push(child) });
  const engine = await torch.open(model, { compute, deterministic: false, threads: 2, trainable: true, ranks });
  try {
    await engine.load({ type: 'folder', folder: model.folder });
    const batch = batchOf({ vocab: engine.vocab }, pack, 1);
    for (let step = 0; step < 2; step++) await learn(engine, batch);
    return Math.max(...started.map(peakBytes));
  } finally {
    await engine.close();
  }
}

/** The peak of a sampler's process when it loads the model and fills its room. */
async function peakOfSampler(
  engineOf: (options: { onStart: (child: ChildProcess) => void }) => SamplingEngine,
  model: ModelRef,
  { maxSeqs, maxModelLen }: SamplerRoom,
): Promise<number> {
  const started: ChildProcess[] = [];
  const engine = engineOf({ onStart: (child) => void started.push(child) });
  const sampler = await engine.sampler(model, { compute: 'fp32', deterministic: false, threads: 2 });
  try {
    await sampler.use({ type: 'folder', folder: model.folder }, { format: 'F32', hash: 'blake3' });
    await sampler.makeRoom({ maxSeqs, maxModelLen });
    const requests = Array.from({ length: maxSeqs }, (_, i) => ({
      prompt: Int32Array.from({ length: maxModelLen / 2 }, (__, t) => (i * t) % 41),
      samples: [{ key: i + 1, random: { seed: [1, 2], draw: 0, sample: i, turn: 0 } as const }],
      sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
      maxNewTokens: maxModelLen / 2,
      stopTokens: new Int32Array(),
    }));
    await drain(sampler.generate(requests));
    return Math.max(...started.map(peakBytes));
  } finally {
    await sampler.close();
  }
}

/** Bytes of one process beside its libraries, and beside what is in the worker's memory. */
async function planned(engine: string, more: Partial<ProcessWanted>): Promise<number> {
  const wanted: ProcessWanted = {
    model: large,
    compute: 'fp32',
    trained: 0,
    frozen: 0,
    ranks: 1,
    tokens,
    machineBytes: machineBytes(),
    ...more,
  };
  const [memory] = (await plansOf(engine).plan?.(wanted)) ?? [];
  const { libraries: _, snapshot: __, ...parts } = memory?.parts ?? {};
  return Object.values(parts).reduce((sum, bytes) => sum + bytes, 0) / wanted.ranks;
}

function expectNear(plan: number, peak: number): void {
  process.stdout.write(`peak / plan: ${(peak / plan).toFixed(2)} of ${Math.round(plan / 2 ** 20)} MiB\n`);
  expect(plan).toBeGreaterThan(peak / factor);
  expect(plan).toBeLessThan(peak * factor);
}

it.each<readonly [ComputeType, number, 'all weights' | 'an adapter']>([
  ['fp32', 1, 'all weights'],
  ['fp32', 2, 'all weights'],
  ['bf16', 1, 'all weights'],
  ['fp32', 2, 'an adapter'],
])('the plan of a trainer is near its peak: in %s on %i ranks with %s', async (compute, ranks, learns) => {
  const isAdapter = learns === 'an adapter';
  const libraries = await peakOfTrainer(tiny, compute, 1, [2]);
  const peak = await peakOfTrainer(isAdapter ? await savedAdapter(sizes) : large, compute, ranks);
  const adapter = isAdapter ? { rank: 3, targets: 'all-linear' } : undefined;
  expectNear(await planned('torch', { trained: 1, compute, ranks, adapter }), peak - libraries);
});

it.each([
  ['hf', hfHere],
  ['vllm', vllmHere],
] as const)('the plan of the sampler %s is near its peak', async (name, engineOf) => {
  const libraries = await peakOfSampler(engineOf, tiny, { maxSeqs: 1, maxModelLen: 32 });
  const peak = await peakOfSampler(engineOf, large, room);
  expectNear(await planned(name, { sampling: room }), peak - libraries);
});
