/** Several samplers with the same weights pass the contract of one. */
import { afterEach, expect, it } from 'vitest';
import type { SamplingEngine } from '../../core/ports/engines.ts';
import type { DecodedTokens, OwningSampler } from '../../core/ports/sampler.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../../workers/engine/engines/native/index.ts';
import { Replicas } from '../../workers/engine/engines/replicas.ts';
import type { Follower } from '../../workers/engine/engines/replicas.ts';
import { drain, publicationOf, randomState, samplerContract } from './engine.ts';
import { savedModel } from './model.ts';

const native = nativeEngines(new MemoryPlan(machineBytes()));
const weights = { format: 'F32', hash: 'blake3' } as const;

/** It reads the weights of the first one, as one in another process would from shared memory. */
function follower(own: OwningSampler, first: OwningSampler): Follower {
  const follow = async (): Promise<void> => {
    const bytes = new Uint8Array(4 * first.parameters.reduce((sum, { size }) => sum + size, 0));
    await first.readPublished?.('F32', 0, bytes);
    await own.use(
      { type: 'published', format: 'F32', read: async (sinkOf) => sinkOf(0, bytes.length)(bytes) },
      weights,
    );
  };
  return Object.assign(own, { follow });
}

const three: SamplingEngine = {
  ...native,
  async sampler(model, options) {
    const first = await native.sampler(model, options);
    const others = [await native.sampler(model, options), await native.sampler(model, options)];
    return new Replicas(
      first,
      others.map((one) => follower(one, first)),
    );
  },
};

samplerContract('three native samplers', native, three, savedModel());

const options = { compute: 'fp32', deterministic: true, threads: 1 } as const;
const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

/** Prompts of two samples each; the keys count from 1. */
const requests = (prompts: number) =>
  Array.from({ length: prompts }, (_, i) => ({
    prompt: Int32Array.of(3, 9, 4 + i),
    samples: [2 * i + 1, 2 * i + 2].map((key) => ({
      key,
      random: { seed: [5, 6], draw: i, sample: key, turn: 0 } as const,
    })),
    sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    maxNewTokens: 6,
    stopTokens: new Int32Array(),
  }));

/** A sampler that notes the keys that it was asked for. */
async function noting(asked: number[][]): Promise<OwningSampler> {
  const sampler = await native.sampler(savedModel(), options);
  const keys: number[] = [];
  asked.push(keys);
  const generate = sampler.generate.bind(sampler);
  return Object.assign(sampler, {
    generate(some: ReturnType<typeof requests>): AsyncIterable<DecodedTokens> {
      keys.push(...some.flatMap(({ samples }) => samples.map(({ key }) => key)));
      return generate(some);
    },
  });
}

it('divides the prompts, and gives the samples that one sampler would give', async () => {
  const policy = await native.open(savedModel(), { ...options, trainable: true });
  opened.push(policy);
  await policy.load(randomState(policy, 4));
  const publication = await publicationOf(policy);
  const asked: number[][] = [];
  const [first, other] = [await noting(asked), await noting(asked)];
  const both = new Replicas(first, [follower(other, first)]);
  const alone = await native.sampler(savedModel(), options);
  opened.push(both, alone);
  const made: Map<number, unknown>[] = [];
  for (const sampler of [both, alone]) {
    await sampler.use(publication, weights);
    await sampler.makeRoom({ maxSeqs: 4, maxModelLen: 16 });
    made.push(await drain(sampler.generate(requests(5))));
  }
  expect(made[0]).toEqual(made[1]);
  expect(asked).toEqual([
    [1, 2, 5, 6, 9, 10],
    [3, 4, 7, 8],
  ]);
});

it('ends with any of them', async () => {
  let end = (): void => {};
  const first = await native.sampler(savedModel(), options);
  const dying = Object.assign(await native.sampler(savedModel(), options), {
    exited: new Promise<void>((resolve) => (end = resolve)),
  });
  const both = new Replicas(first, [follower(dying, first)]);
  await both.makeRoom({ maxSeqs: 4, maxModelLen: 16 });
  end();
  await both.exited;
  expect(() => first.generate(requests(1))).toThrow('makeRoom'); // it was closed before
  await expect(drain(both.generate(requests(1)))).rejects.toThrow();
});
