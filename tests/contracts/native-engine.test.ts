import { expect, it } from 'vitest';
import type { StateSource } from '../../core/ports/policy.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { nativeEngines } from '../../workers/engine/engines/native/index.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import { drain, engineContract, publicationOf, randomState } from './engine.ts';
import type { Sampled } from './engine.ts';
import { savedModel } from './model.ts';

const engines = nativeEngines(new MemoryPlan(machineBytes()));
engineContract('the native engine', engines, engines);

it('gives the same samples with a cache of one sequence, one after the other, in place and with weights of its own', async () => {
  const samples: Map<number, Sampled>[] = [];
  const request = {
    prompt: Int32Array.of(3, 9, 4),
    samples: [1, 2, 3, 4].map((key) => ({ key, random: { seed: [5, 6], draw: 1, sample: key, turn: 0 } as const })),
    sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    maxNewTokens: 6,
    stopTokens: new Int32Array(),
  };
  let published: StateSource | undefined;
  // The model takes 190 KiB, a sequence 6.
  for (const bytes of [200 * 2 ** 10, 2 ** 30]) {
    const engines = nativeEngines(new MemoryPlan(bytes));
    const options = { compute: 'fp32', deterministic: true, threads: 1, trainable: true } as const;
    const engine = await engines.open(savedModel(), options);
    await engine.load(randomState(engine, 12));
    const sampler = await engines.samplerOf?.(engine);
    await sampler?.makeRoom({ maxSeqs: 4, maxModelLen: 16 });
    if (sampler !== undefined) samples.push(await drain(sampler.generate([request])));
    await sampler?.close();
    published = await publicationOf(engine);
    await engine.close();
  }
  const engines = nativeEngines(new MemoryPlan(2 ** 30));
  const owning = await engines.sampler(savedModel(), { compute: 'fp32', deterministic: true, threads: 1 });
  if (published !== undefined) await owning.use(published, { format: 'F32', hash: 'blake3' });
  await owning.makeRoom({ maxSeqs: 4, maxModelLen: 16 });
  samples.push(await drain(owning.generate([request])));
  await owning.close();
  expect(samples).toHaveLength(3);
  expect(samples[1]).toEqual(samples[0]);
  expect(samples[2]).toEqual(samples[0]);
});

it('refuses a model for which no memory is left, and has it again when another one is closed', async () => {
  const engines = nativeEngines(new MemoryPlan(2 ** 20));
  const options = { compute: 'fp32', deterministic: true, threads: 1, trainable: false } as const;
  const [small, large] = [savedModel(), savedModel({ num_hidden_layers: 40 })];
  await expect(engines.open(large, options)).rejects.toMatchObject({ code: 'TooLittleMemory' });
  const first = await engines.open(small, options);
  await first.close();
  for (let i = 0; i < 20; i++) await (await engines.open(small, options)).close();
});
