// @module-tag engines
/** A state of two ranks goes on with one, with three and in the native engine, and back. */
import { afterAll, describe, expect, it } from 'vitest';
import { forwardOne } from '../../core/ports/one-lane.ts';
import type { TrainingEngine } from '../../core/ports/engines.ts';
import type { PolicyEngine, StateSource } from '../../core/ports/policy.ts';
import { stateParts } from '../../core/records/state-parts.ts';
import { batchOf } from '../../native/testing/decoders.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../../workers/engine/engines/native/index.ts';
import { rootsOf } from '../../workers/engine/engines/roots.ts';
import { learn, partOf, randomState } from '../contracts/engine.ts';
import { savedModel } from '../contracts/model.ts';
import { torchHere } from './engines-here.ts';

// No size is divided evenly by two or three ranks.
const model = savedModel({ hidden_size: 20, num_attention_heads: 5, num_key_value_heads: 1, intermediate_size: 35 });
const batch = batchOf({ vocab: 41 }, [7, 3, 5], 11);
const open: PolicyEngine[] = [];
afterAll(async () => {
  for (const engine of open.splice(0)) await engine.close();
});

const [torch, native] = [torchHere(), nativeEngines(new MemoryPlan(2 ** 40))];
async function opened(engines: TrainingEngine, ranks = 1): Promise<PolicyEngine> {
  const options = { compute: 'fp32', deterministic: true, threads: 2, trainable: true, ranks } as const;
  const engine = await engines.open(model, options);
  open.push(engine);
  return engine;
}

/** The state of an engine, as a checkpoint gives it to another one. */
async function stateOf(engine: PolicyEngine): Promise<StateSource> {
  const { elements: end, steps } = engine;
  const parts = new Map<string, Float32Array>();
  for (const part of stateParts) parts.set(part, await partOf(engine, part));
  return {
    type: 'pieces',
    steps,
    read: async (sinkOf) => {
      for (const [part, values] of parts) await sinkOf({ part, start: 0, end })(new Uint8Array(values.buffer));
    },
  };
}

async function logProbsOf(engine: PolicyEngine): Promise<Float32Array> {
  const { outputs } = await forwardOne(engine, batch, { temperature: 1, wants: ['logProbs'], keep: false });
  return outputs.logProbs;
}

describe('a state of two ranks', () => {
  it('has the same names and digests with one rank, with three and in the native engine, and trains on', async () => {
    const two = await opened(torch, 2);
    await two.load(randomState(two, 5));
    await learn(two, batch);
    const [source, digests] = [await stateOf(two), await rootsOf(two, 'blake3')];
    await learn(two, batch);
    const expected = await logProbsOf(two);
    for (const [where, other] of [
      ['one rank', await opened(torch)],
      ['three ranks', await opened(torch, 3)],
      ['native', await opened(native)],
    ] as const) {
      expect(
        other.parameters.map(({ name, shape }) => ({ name, shape })),
        where,
      ).toEqual(two.parameters.map(({ name, shape }) => ({ name, shape })));
      await other.load(source);
      expect(await rootsOf(other, 'blake3'), where).toEqual(digests);
      expect(other.steps, where).toBe(4);
      await learn(other, batch);
      (await logProbsOf(other)).forEach((value, i) => expect(value, where).toBeCloseTo(expected[i] ?? Number.NaN, 3));
      await two.load(await stateOf(other));
      expect(await rootsOf(two, 'blake3'), where).toEqual(await rootsOf(other, 'blake3'));
    }
  });
});
