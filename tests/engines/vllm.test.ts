// @module-tag engines
/** The sampler `vllm` passes the contract of samplers, with what the native engine publishes. */
import { expect, it } from 'vitest';
import { machineBytes } from '../../infra/machine-memory.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../../workers/engine/engines/native/index.ts';
import { drain, publicationOf, randomState, samplerContract } from '../contracts/engine.ts';
import { savedModel } from '../contracts/model.ts';
import { vllmHere } from './engines-here.ts';

// vLLM's attention on a processor knows no head of fewer than 32 values.
const sizes = { hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1 };

const native = nativeEngines(new MemoryPlan(machineBytes()));

samplerContract('vllm', native, vllmHere(), savedModel(sizes));

it('takes more prompts than one step has room for', async () => {
  const model = savedModel(sizes);
  const options = { compute: 'bf16', deterministic: false, threads: 2, trainable: true } as const;
  const [policy, sampler] = [await native.open(model, options), await vllmHere().sampler(model, options)];
  try {
    await policy.load(randomState(policy, 1));
    // Room may come before any weights.
    await sampler.makeRoom({ maxSeqs: 64, maxModelLen: 520 });
    await sampler.use(await publicationOf(policy), { format: 'F32', hash: 'blake3' });
    // 160 prompts of 500 tokens; a step has 8,192.
    const requests = Array.from({ length: 160 }, (_, i) => ({
      prompt: Int32Array.from({ length: 500 }, (_, t) => (i * t) % 41),
      samples: [{ key: i + 1, random: { seed: [1, 2], draw: 0, sample: i, turn: 0 } as const }],
      sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
      maxNewTokens: 4,
      stopTokens: new Int32Array(),
    }));
    const samples = await drain(sampler.generate(requests));
    expect([...samples.values()].map(({ tokens }) => tokens.length)).toEqual(requests.map(() => 4));
  } finally {
    await sampler.close();
    await policy.close();
  }
});
