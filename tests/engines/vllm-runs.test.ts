// @module-tag engines
/** Whole runs whose responses vLLM samples, and what becomes of its process. */
import type { ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mergeTrees } from '../../core/recipe/merge.ts';
import type { Tree } from '../../core/recipe/merge.ts';
import { actorOf } from '../../core/records/components.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../../workers/engine/engines/native/index.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import { tinySizes } from '../loop-inputs.ts';
import { torchHere, vllmHere } from './engines-here.ts';

const recipe = {
  trainer: { total_training_steps: 3, save_freq: 2 },
  rollout: { name: 'vllm' },
  deterministic: false,
};

describe('a run whose responses vLLM samples', () => {
  const started: ChildProcess[] = [];
  const sampler = vllmHere({ onStart: (child) => void started.push(child) });
  const loop = new InProcessLoop(sevens, {
    engines: [nativeEngines(new MemoryPlan(machineBytes())), torchHere(), sampler],
  });
  // vLLM's attention on a processor knows no head of fewer than 32 values.
  beforeAll(() => loop.up({ ...tinySizes, num_attention_heads: 1, num_key_value_heads: 1 }));
  afterAll(() => loop.remove());

  // torch names its states by their lineage, and publishes in bf16.
  it.each<readonly [string, Tree]>([
    ['native', {}],
    ['torch', { trainer: { engine: 'torch' }, model: { compute_dtype: 'bf16' } }],
  ])('has new weights of %s in each iteration, without another process', async (_, more) => {
    const before = started.length;
    const run = await loop.completed(mergeTrees(recipe, more));
    const states = run.iterations.map(({ update }) => actorOf(update.components).stateDigest);
    expect(new Set(states).size).toBe(3);
    expect(started.length - before).toBeLessThanOrEqual(1);
  });

  it('goes on when its process is killed', async () => {
    let kills = 0;
    const run = await loop.completed(recipe, {
      committed: async (position) => {
        if (position === 1 && started.at(-1)?.kill('SIGKILL')) kills += 1;
      },
    });
    expect(kills).toBe(1);
    expect(run.iterations).toHaveLength(3);
  });
});
