// @module-tag engines
/** A state in bf16: it learns what one in fp32 learns, though its steps are smaller than those of bf16. */
import { execFile } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../core/at.ts';
import type { AdamW, PolicyEngine } from '../../core/ports/policy.ts';
import { keys } from '../../core/records/keys.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { packageRoot, petrelHome } from '../../infra/home.ts';
import { batchOf } from '../../native/testing/decoders.ts';
import { partOf, randomState } from '../contracts/engine.ts';
import { savedModel } from '../contracts/model.ts';
import { LoopUnderTest, separatePools } from '../loop-under-test.ts';
import { torchHere } from './engines-here.ts';

const model = savedModel({ hidden_size: 64, intermediate_size: 128 });
// A step moves a weight by some 0.00004. In bf16 a weight of 0.3 has neighbours 0.002 away.
const adamw: AdamW = { lr: 1e-3, beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0, maxGradNorm: 0.01 };
const batch = batchOf({ vocab: 41 }, [7, 3, 5], 11);
const parts = ['weights', 'm', 'v'] as const;

const opened: PolicyEngine[] = [];
afterEach(() => Promise.all(opened.splice(0).map((one) => one.close())));

async function open(state: 'fp32' | 'bf16', ranks: number, tensor = 1): Promise<PolicyEngine> {
  const division = { ...(state === 'bf16' && { state }), ...(tensor > 1 && { tensor }) };
  const options = { compute: 'bf16', deterministic: true, threads: 1, trainable: true, ranks, division } as const;
  const engine = await torchHere().open(model, options);
  opened.push(engine);
  await engine.load(randomState(engine, 1));
  return engine;
}

async function learn(engine: PolicyEngine, steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) {
    const made = await engine.forward([batch], { temperature: 1, wants: ['logProbs'], keep: true });
    const logProbs = new Float32Array(batch.positions_P.length).fill(-0.1);
    await engine.backward(made.map(({ handle }) => ({ handle, gradients: { logProbs } })));
    await engine.step(adamw);
  }
}

const stateOf = async (engine: PolicyEngine) =>
  Object.fromEntries(await Promise.all(parts.map(async (part) => [part, await partOf(engine, part)] as const)));

const inBf16 = (values: Float32Array) =>
  values.every((value) => {
    const [bits = 0] = new Uint32Array(Float32Array.of(value).buffer);
    return (bits & 0xff_ff) === 0;
  });

describe.each([
  [1, 1],
  [2, 1],
  [2, 2],
])('a state in bf16 of %i ranks, %i of which share matrices', (ranks, tensor) => {
  it('moves as one in fp32 does, and repeats its bits from a copy', async () => {
    const wide = await open('fp32', ranks, tensor);
    const narrow = await open('bf16', ranks, tensor);
    const before = await partOf(wide, 'weights');
    const start = await partOf(narrow, 'weights');
    expect(inBf16(start)).toBe(true);
    await learn(wide, 12);
    await learn(narrow, 12);
    const [exact, found] = [await partOf(wide, 'weights'), await partOf(narrow, 'weights')];
    let [product, square] = [0, 0];
    for (let i = 0; i < exact.length; i++) {
      const moved = at(exact, i) - at(before, i);
      product += moved * (at(found, i) - at(start, i));
      square += moved * moved;
    }
    // Rounded to the nearest, no weight would move.
    expect(Math.abs(product / square - 1)).toBeLessThan(0.05);
    const state = await stateOf(narrow);
    for (const part of parts) expect(inBf16(state[part] ?? new Float32Array())).toBe(true);

    const again = await open('bf16', ranks, tensor);
    await again.load({
      type: 'pieces',
      steps: narrow.steps,
      read: async (sinkOf) => {
        for (const part of parts) {
          const values = state[part] ?? new Float32Array();
          await sinkOf({ part, start: 0, end: values.length })(new Uint8Array(values.buffer));
        }
      },
    });
    await learn(narrow, 2);
    await learn(again, 2);
    const [first, second] = [await stateOf(narrow), await stateOf(again)];
    expect(second).toEqual(first);
    expect(first['weights']).not.toEqual(state['weights']);
  });
});

it('computes with the same numbers as one in fp32', async () => {
  const scores = async (state: 'fp32' | 'bf16') => {
    const engine = await open(state, 1);
    return engine.forward([batch], { temperature: 1, wants: ['logProbs', 'entropy'], keep: false });
  };
  expect(await scores('bf16')).toEqual(await scores('fp32'));
});

describe('a run whose sampler is another process', () => {
  const loop = new LoopUnderTest();
  beforeAll(async () => {
    symlinkSync(join(petrelHome(), 'engines'), join(loop.home, 'engines'));
    await loop.up(separatePools);
  });
  afterAll(() => loop.remove());

  it('samples from the rounded weights from the start, though its model is in fp32', async () => {
    const run = await loop.completed({
      trainer: { engine: 'torch', state_dtype: 'bf16', total_training_steps: 2 },
      model: { compute_dtype: 'bf16' },
      rollout: { name: 'hf' },
      deterministic: false,
    });
    expect((await run.log.head())?.profile.division).toEqual({ state: 'bf16' });
    expect(await loop.store.children(keys.allWeights(run.runId))).not.toHaveLength(0);
  });
});

it.each([1, 2])('rounds to a neighbour, with the mean that was computed (seed %i)', async (seed) => {
  const { python = '' } = readEnvironment(petrelHome(), 'torch-cpu') ?? {};
  const script = join(packageRoot(), 'tests/engines/rounding.py');
  const args = ['-I', '-B', script, join(packageRoot(), 'engines/torch'), String(seed)];
  const { stdout } = await promisify(execFile)(python, args);
  expect(stdout).toContain('compared 4000000');
});
