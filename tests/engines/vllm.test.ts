// @module-tag engines
/** The sampler `vllm` passes the contract of samplers, with what the native engine publishes. */
import { execFileSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { at } from '../../core/at.ts';
import { poll } from '../../infra/poll.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../../workers/engine/engines/native/index.ts';
import { drain, learn, publicationOf, randomState, samplerContract, scored } from '../contracts/engine.ts';
import { rootOf } from '../../workers/engine/engines/roots.ts';
import { savedModel } from '../contracts/model.ts';
import { isThere } from '../joined-machine.ts';
import { patienceMs } from '../patience.ts';
import { vllmHere } from './engines-here.ts';

// vLLM's attention on a processor knows no head of fewer than 32 values.
const sizes = { hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1 };

const native = nativeEngines(new MemoryPlan(machineBytes()));

samplerContract('vllm', native, vllmHere(), savedModel(sizes));

/** The processes over which the vLLM of a group has divided its model, if it has. */
const workersOf = (group: number): number[] =>
  execFileSync('ps', ['-eo', 'pid=,pgid=,args='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, pgid, ...args]) => Number(pgid) === group && /VLLM::Worker/.test(args.join(' ')))
    .map(([pid]) => Number(pid));

const promptOf = (key: number) => Int32Array.of(3, 9, key);
const requestsOf = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    prompt: promptOf(i + 1),
    samples: [{ key: i + 1, random: { seed: [1, 2], draw: i, sample: 0, turn: 0 } as const }],
    sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    maxNewTokens: 4,
    stopTokens: new Int32Array(),
  }));

describe.each([
  ['two vLLMs with one copy of the weights', { replicas: 2 }, {}],
  ['a vLLM over two processes', {}, { tensorParallel: 2 }],
] as const)('%s', (_, some, divided) => {
  it('sample with the model’s own log-probs, also after new weights, and end with any of their processes', async () => {
    const model = savedModel(sizes);
    const options = { compute: 'fp32', deterministic: false, threads: 2 } as const;
    const policy = await native.open(model, { ...options, trainable: true });
    const children: ChildProcess[] = [];
    const onStart = (child: ChildProcess) => void children.push(child);
    const sampler = await vllmHere({ ...some, onStart }).sampler(model, { ...options, ...divided });
    try {
      await policy.load(randomState(policy, 1));
      await sampler.makeRoom({ maxSeqs: 4, maxModelLen: 16 });
      for (const round of [0, 1]) {
        if (round === 1) await learn(policy);
        const digest = await sampler.use(await publicationOf(policy), { format: 'F32', hash: 'blake3' });
        expect(digest).toBe(await rootOf(policy, 'weights', 'blake3'));
        const samples = await drain(sampler.generate(requestsOf(6)));
        for (const [key, { tokens, logProbs }] of samples) {
          const own = await scored(policy, promptOf(key), tokens);
          expect(tokens).toHaveLength(4);
          own.forEach((value, t) => expect(value, `round ${round}, sample ${key}`).toBeCloseTo(at(logProbs, t), 4));
        }
      }
      const leader = at(children, -1).pid ?? 0;
      const workers = workersOf(leader);
      expect(workers).toHaveLength('tensorParallel' in divided ? 2 : 0);
      process.kill(workers[1] ?? leader, 'SIGKILL');
      await expect(drain(sampler.generate(requestsOf(6)))).rejects.toMatchObject({ code: 'EngineExited' });
      await sampler.exited;
      await sampler.close();
      // Each leads a group, in which processes that vLLM has started are, too.
      for (const { pid = 0 } of children) await poll(() => !isThere(pid), { everyMs: 20, timeoutMs: patienceMs });
    } finally {
      await sampler.close();
      await policy.close();
    }
  });
});

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
