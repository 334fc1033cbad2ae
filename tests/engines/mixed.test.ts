// @module-tag engines
/** Weights that one engine publishes and another one loads, in each compute type. */
import { afterEach, describe, expect, it } from 'vitest';
import type { PolicyEngine, StateSource } from '../../core/ports/policy.ts';
import { publishedBytes } from '../../core/records/publications.ts';
import type { WeightsFormat } from '../../core/parameters.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../../workers/engine/engines/native/index.ts';
import { publicationRoot } from '../../workers/engine/engines/roots.ts';
import { randomState } from '../contracts/engine.ts';
import { savedModel } from '../contracts/model.ts';
import { hfHere, torchHere, vllmHere } from './engines-here.ts';

// vLLM's attention on a processor knows no head of fewer than 32 values.
const model = savedModel({ hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1 });
const native = nativeEngines(new MemoryPlan(machineBytes()));
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

function opened<T extends { close(): Promise<void> }>(one: T): T {
  open.push(one);
  return one;
}

async function published(engine: PolicyEngine, format: WeightsFormat): Promise<StateSource> {
  const bytes = new Uint8Array(publishedBytes(engine.parameters, format));
  await engine.readPublished(format, 0, bytes);
  return {
    type: 'published',
    format,
    read: async (sinkOf) => {
      const sink = sinkOf(0, bytes.length);
      for (let at = 0; at < bytes.length; at += 10_001) await sink(bytes.subarray(at, at + 10_001));
    },
  };
}

describe.each(['fp32', 'bf16'] as const)('in %s', (compute) => {
  const options = { compute, deterministic: false, threads: 2, trainable: true };

  it('native and torch publish the same bytes, which every sampler names by their digest', async () => {
    const policies = [opened(await native.open(model, options)), opened(await torchHere().open(model, options))];
    const samplers = [
      opened(await native.sampler(model, options)),
      opened(await hfHere().sampler(model, options)),
      opened(await vllmHere().sampler(model, options)),
    ];
    // A state's own values, as before the first update, and what they are published as later.
    for (const format of compute === 'fp32' ? (['F32'] as const) : (['F32', 'BF16'] as const)) {
      const roots: string[] = [];
      for (const policy of policies) {
        await policy.load(randomState(policy, 3));
        roots.push(await publicationRoot(policy, format, 'blake3'));
        for (const sampler of samplers)
          expect(await sampler.use(await published(policy, format), { format, hash: 'blake3' })).toBe(roots[0]);
      }
      expect(new Set(roots).size).toBe(1);
    }
  });
});
