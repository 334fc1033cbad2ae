/**
 * The contract of every engine, by what an engine can do. Each engine's test calls this with what creates it; an
 * ability that the engine does not claim in its facts is not tested.
 */
import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { forwardOne } from '../../core/ports/one-lane.ts';
import { at } from '../../core/at.ts';
import type { ModelRef, SamplingEngine, TrainingEngine } from '../../core/ports/engines.ts';
import { blockHashes } from '../../core/parameters.ts';
import { stateParts } from '../../core/records/state-parts.ts';
import type { AdamW, EngineOptions, PackedBatch, PolicyEngine, StateSource } from '../../core/ports/policy.ts';
import type { ComputeType } from '../../core/parameters.ts';
import { publishedBytes } from '../../core/records/publications.ts';
import { readShared } from '../../infra/shared-memory.ts';
import { blockHasher } from '../../log/objects/block-hasher.ts';
import type { SamplingSettings } from '../../core/sampling-settings.ts';
import type { DecodedTokens, GenerateRequest, OwningSampler, Sampler, SamplerRoom } from '../../core/ports/sampler.ts';
import { rootOf } from '../../workers/engine/engines/roots.ts';
import { batchOf, randomOf } from '../../native/testing/decoders.ts';
import { lanesContract } from './engine-lanes.ts';
import { savedModel } from './model.ts';

const vocab = 41;
const base = { compute: 'fp32', deterministic: true, threads: 1, trainable: true } as const;
const adamw: AdamW = { lr: 0.01, beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 1 };
const batch = batchOf({ vocab }, [7, 3, 5], 11);

/** Random weights and moments: the same for the same seed. */
export function randomState({ elements }: Pick<PolicyEngine, 'elements'>, seed: number, steps = 3): StateSource {
  return {
    type: 'pieces',
    steps,
    read: async (sinkOf) => {
      for (const [p, part] of stateParts.entries()) {
        const random = randomOf(seed * 3 + p);
        const values = Float32Array.from({ length: elements }, () =>
          part === 'weights' ? random() - 0.5 : 0.01 * random(),
        );
        const middle = Math.floor(elements / 2);
        for (const [start, end] of [
          [0, middle],
          [middle, elements],
        ] as const)
          await sinkOf({ part, start, end })(new Uint8Array(values.slice(start, end).buffer));
      }
    },
  };
}

export async function partOf(engine: PolicyEngine, part: string): Promise<Float32Array> {
  const values = new Float32Array(engine.elements);
  await engine.read(part, 0, values);
  return values;
}

/** One optimiser step that raises the log-probs of a batch's targets. */
export async function learn(engine: PolicyEngine, from: PackedBatch = batch): Promise<void> {
  const { handle } = await forwardOne(engine, from, { temperature: 1, wants: ['logProbs'], keep: true });
  await engine.backward([{ handle, gradients: { logProbs: new Float32Array(from.positions_P.length).fill(-0.1) } }]);
  await engine.step(adamw);
}

/** What one test has used serves the next one: to start an engine may take seconds. */
class Lent<T extends { close(): Promise<void> }> {
  readonly #make: (compute: ComputeType) => Promise<T>;
  #all: { readonly compute: ComputeType; readonly one: T; free: boolean }[] = [];

  constructor(make: (compute: ComputeType) => Promise<T>) {
    this.#make = make;
  }

  async take(compute: ComputeType): Promise<T> {
    const known = this.#all.find((lent) => lent.free && lent.compute === compute);
    if (known !== undefined) {
      known.free = false;
      return known.one;
    }
    const one = await this.#make(compute);
    this.#all.push({ compute, one, free: false });
    return one;
  }

  takeBack(): void {
    for (const lent of this.#all) lent.free = true;
  }

  async close(): Promise<void> {
    for (const { one } of this.#all.splice(0)) await one.close();
  }
}

type Divided = Partial<Pick<EngineOptions, 'ranks' | 'division'>>;
type Policies = (seed: number, compute?: ComputeType) => Promise<PolicyEngine>;

/** Gives a policy with random weights. */
function lentPolicies(engines: TrainingEngine, model: ModelRef, divided: Divided): Policies {
  const policies = new Lent((compute) => engines.open(model, { ...base, ...divided, compute }));
  afterEach(() => policies.takeBack());
  afterAll(() => policies.close());
  return async (seed, compute = 'fp32') => {
    const engine = await policies.take(compute);
    await engine.load(randomState(engine, seed));
    return engine;
  };
}

/** `sampling`: the engine whose sampler loads what the other one publishes. */
export function engineContract(
  name: string,
  engines: TrainingEngine,
  sampling: SamplingEngine,
  { model = savedModel({ vocab_size: vocab }), ...divided }: Divided & { readonly model?: ModelRef } = {},
): void {
  const options = { ...base, ...divided };
  const policy = lentPolicies(engines, model, divided);

  describe(`${name}: a model that is loaded`, () => {
    it('throws InvalidInputError for a model that it cannot run', async () => {
      const none = savedModel({ vocab_size: vocab }, { architectures: ['NoSuchModelForCausalLM'], model_type: 'none' });
      await expect(engines.open(none, options)).rejects.toMatchObject({ code: 'InvalidInput' });
    });

    it('has the state that was loaded, and reads any range of it', async () => {
      const engine = await policy(1);
      expect(engine.steps).toBe(3);
      const whole = await partOf(engine, 'm');
      const random = randomOf(1 * 3 + 1);
      expect(whole[0]).toBe(Math.fround(0.01 * random()));
      await fc.assert(
        fc.asyncProperty(fc.nat(engine.elements - 1), fc.nat(50), async (start, length) => {
          const some = new Float32Array(Math.min(length, engine.elements - start));
          await engine.read('m', start, some);
          expect(some).toEqual(whole.subarray(start, start + some.length));
        }),
        { numRuns: 20 },
      );
    });

    it('gives the outputs that it lists and refuses others', async () => {
      const engine = await policy(5);
      const wants = engine.outputs;
      const { outputs } = await forwardOne(engine, batch, { temperature: 1, wants, topK: 3, keep: false });
      for (const name of wants) expect([...outputs[name]].every(Number.isFinite), name).toBe(true);
      await expect(forwardOne(engine, batch, { temperature: 1, wants: ['values'], keep: false })).rejects.toMatchObject(
        {
          code: 'InvalidInput',
          message: expect.stringContaining('not values'),
        },
      );
      await expect(engine.backward([{ handle: 99, gradients: {} }])).rejects.toMatchObject({ code: 'InvalidInput' });
    });

    it('sums the squared probabilities of the vocabulary, at a temperature', async () => {
      const engine = await policy(4);
      const wants = ['sumPiSquared', 'logits'] as const;
      const { outputs } = await forwardOne(engine, batch, { temperature: 0.7, wants, keep: false });
      expect(outputs.sumPiSquared).toHaveLength(batch.positions_P.length);
      outputs.sumPiSquared.forEach((found, p) => {
        const row = outputs.logits.subarray(p * vocab, (p + 1) * vocab);
        const weights = Array.from(row, (logit) => Math.exp((logit - Math.max(...row)) / 0.7));
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        expect(found).toBeCloseTo(
          weights.reduce((sum, weight) => sum + (weight / total) ** 2, 0),
          5,
        );
      });
    });
  });

  describe(`${name}: a model that learns`, () => {
    it('gives what it read as a copy: training changes the engine’s state alone', async () => {
      const engine = await policy(3);
      const before = await partOf(engine, 'weights');
      const copy = before.slice();
      await learn(engine);
      expect(before).toEqual(copy);
      expect(await partOf(engine, 'weights')).not.toEqual(copy);
      expect(engine.steps).toBe(4);
    });

    it('takes no step on gradients that are not finite, and forgets them', async () => {
      const engine = await policy(6);
      const before = await partOf(engine, 'weights');
      const { handle } = await forwardOne(engine, batch, { temperature: 1, wants: ['logProbs'], keep: true });
      await engine.backward([
        { handle, gradients: { logProbs: new Float32Array(batch.positions_P.length).fill(Number.NaN) } },
      ]);
      expect(await engine.step(adamw)).toMatchObject({ taken: false });
      expect(await partOf(engine, 'weights')).toEqual(before);
      expect(engine.steps).toBe(3);
      const other = await policy(6);
      await Promise.all([learn(engine), learn(other)]);
      expect(await partOf(engine, 'weights')).toEqual(await partOf(other, 'weights'));
    });

    it('drops a forward pass that is discarded, and accumulated gradients on demand', async () => {
      const [engine, other] = [await policy(7), await policy(7)];
      const kept = await forwardOne(engine, batch, { temperature: 1, wants: ['logProbs'], keep: true });
      await engine.discard([kept.handle]);
      await expect(engine.backward([{ handle: kept.handle, gradients: {} }])).rejects.toMatchObject({
        code: 'InvalidInput',
      });
      const added = await forwardOne(engine, batch, { temperature: 1, wants: ['logProbs'], keep: true });
      await engine.backward([
        { handle: added.handle, gradients: { logProbs: new Float32Array(batch.positions_P.length).fill(1) } },
      ]);
      await engine.zeroGrads();
      await Promise.all([learn(engine), learn(other)]);
      expect(await partOf(engine, 'weights')).toEqual(await partOf(other, 'weights'));
    });
  });

  describe(`${name}: micro-batches side by side`, () => lanesContract(vocab, policy));

  describe(`${name}: a state that is saved and published`, () => {
    it.each(blockHashes)('digests the blocks of what it reads by %s, and shows progress', async (hash) => {
      const engine = await policy(2);
      const hasher = await blockHasher(hash);
      const blockBytes = 1000;
      let ticks = 0;
      for (const part of stateParts) {
        const digests = await engine.blockDigests(part, blockBytes, hash, { tick: () => ticks++ });
        const bytes = new Uint8Array((await partOf(engine, part)).buffer);
        const expected = [];
        for (let from = 0; from < bytes.length; from += blockBytes) {
          hasher.update(bytes.subarray(from, from + blockBytes));
          expected.push(...hasher.digest());
        }
        expect([...digests]).toEqual(expected);
      }
      expect(ticks).toBeGreaterThanOrEqual(stateParts.length);
    });

    it('copies its state into shared memory, if it can: training does not change the copy', async () => {
      const engine = await policy(4);
      const copy = await engine.copy?.();
      if (copy === undefined) return expect(engine.copy).toBeUndefined();
      const before = [];
      for (const part of stateParts) before.push(await partOf(engine, part));
      await learn(engine);
      for (const [i, values] of before.entries()) {
        const found = new Float32Array(values.length);
        readShared(copy.fd, copy.starts[i] ?? 0, found);
        expect(found).toEqual(values);
      }
      const second = engine.copy?.();
      copy.release();
      const found = new Float32Array(engine.elements);
      const next = await second;
      if (next === undefined) throw new Error('there was room for the first copy');
      readShared(next.fd, next.starts[0] ?? 0, found);
      expect(found).toEqual(await partOf(engine, 'weights'));
      next.release();
    });

    it.each(engines.facts().computes)('takes what another one in %s publishes, cut anywhere', async (compute) => {
      const format = compute === 'bf16' ? 'BF16' : 'F32';
      const [from, to] = [await policy(5, compute), await policy(6, compute)];
      const bytes = new Uint8Array(publishedBytes(from.parameters, format));
      await from.readPublished(format, 0, bytes);
      await to.load({
        type: 'published',
        format,
        read: async (sinkOf) => {
          const middle = Math.floor(bytes.length / 3);
          await sinkOf(middle, bytes.length)(bytes.subarray(middle));
          const sink = sinkOf(0, middle);
          for (let at = 0; at < middle; at += 1001) await sink(bytes.subarray(at, Math.min(at + 1001, middle)));
        },
      });
      const tail = new Uint8Array(bytes.length - 101);
      await to.readPublished(format, 101, tail);
      expect(Buffer.from(tail).equals(bytes.subarray(101))).toBe(true);
      const wants = ['logProbs'] as const;
      const [expected, found] = await Promise.all(
        [from, to].map((engine) => forwardOne(engine, batch, { temperature: 1, wants, keep: false })),
      );
      expect(found?.outputs).toEqual(expected?.outputs);
      if (format === 'F32') return expect(await partOf(to, 'weights')).toEqual(await partOf(from, 'weights'));
      const hasher = await blockHasher('blake3');
      hasher.update(bytes);
      expect([...(await to.publishedDigests(1 << 20))]).toEqual([...hasher.digest()]);
    });
  });

  /** The same state and the same batch give the same bits. */
  const repeats = engines.facts().deterministic['fp32'] !== undefined;
  describe.runIf(repeats)(`${name}: bits that repeat`, () => {
    it('goes from the same state to the same state, and not into another engine’s', async () => {
      const [one, two, idle] = [await policy(4), await policy(4), await policy(4)];
      const untouched = await partOf(idle, 'weights');
      await Promise.all([learn(one), learn(two)]);
      for (const part of stateParts) expect(await partOf(one, part)).toEqual(await partOf(two, part));
      expect(await partOf(idle, 'weights')).toEqual(untouched);
    });
  });

  const { samplerOf } = engines;
  describe.runIf(samplerOf !== undefined)(`${name}: a sampler in place`, () => {
    it('samples with the weights of the model as they are after each step', async () => {
      const engine = await policy(17);
      const sampler = await samplerOf?.(engine);
      if (sampler === undefined) throw new Error('the engine has a sampler in place');
      await sampler.makeRoom({ maxSeqs: 4, maxModelLen: 16 });
      for (const round of [0, 1]) {
        if (round === 1) {
          await sampler.pause();
          await learn(engine);
          await sampler.resume();
        }
        const samples = await drain(sampler.generate([request([1, 2, 3])]));
        expect(samples.size).toBe(3);
        for (const [key, { tokens, logProbs }] of samples)
          expect(await scored(engine, prompt, tokens), `round ${round}, sample ${key}`).toEqual(logProbs);
      }
      await sampler.close();
      await learn(engine);
    });
  });

  samplers(name, policy, sampling, model, { sameBits: sampling.name === engines.name, reports: () => true });
}

const prompt = Int32Array.of(3, 9, 4);
const request = (keys: readonly number[], maxNewTokens = 6): GenerateRequest => ({
  prompt,
  samples: keys.map((key) => ({ key, random: { seed: [5, 6], draw: 1, sample: key, turn: 0 } })),
  sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
  maxNewTokens,
  stopTokens: new Int32Array(),
});

/** Can the sampler give the log-probs of the model when it samples so? */
type Reports = (settings: SamplingSettings) => boolean;

/** Counts the tokens that come of the samples 1 and 2 when `key` is aborted as soon as there are any. */
async function abortedAtFirstTokens(sampler: Sampler, key: number, maxSeqs = 4): Promise<Map<number, number>> {
  await sampler.makeRoom({ maxSeqs, maxModelLen: 16 });
  const counts = new Map<number, number>();
  for await (const { keys } of sampler.generate([request([1, 2])])) {
    for (const one of keys) counts.set(one, (counts.get(one) ?? 0) + 1);
    await sampler.abort(key);
    await sampler.abort(77); // nobody knows it
  }
  return counts;
}

/**
 * The part of the contract for an engine that only samples; `model`: one that it can run. Where it cannot report the
 * model's log-probs, it must refuse.
 */
export function samplerContract(
  name: string,
  engines: TrainingEngine,
  sampling: SamplingEngine,
  model: ModelRef,
  reports: Reports = () => true,
): void {
  samplers(name, lentPolicies(engines, model, {}), sampling, model, { sameBits: false, reports });
}

/** `sameBits`: the policy is of the same engine. */
function samplers(
  name: string,
  policy: Policies,
  sampling: SamplingEngine,
  model: ModelRef,
  { sameBits, reports }: { readonly sameBits: boolean; readonly reports: Reports },
): void {
  const lent = new Lent((compute) => sampling.sampler(model, { ...base, compute }));
  afterEach(() => lent.takeBack());
  afterAll(() => lent.close());
  /** It has the weights of this policy. */
  const samplerWith = async (engine: PolicyEngine, room: SamplerRoom): Promise<OwningSampler> => {
    const sampler = await lent.take('fp32');
    await sampler.use(await publicationOf(engine), { format: 'F32', hash: 'blake3' });
    await sampler.makeRoom(room);
    return sampler;
  };

  describe(`${name}: a sampler`, () => {
    it('drops what is aborted or paused, and ignores unknown keys', async () => {
      const sampler = await samplerWith(await policy(10), { maxSeqs: 4, maxModelLen: 16 });
      const [live, waiting] = [await abortedAtFirstTokens(sampler, 1), await abortedAtFirstTokens(sampler, 2, 1)];
      expect(live.get(2)).toBe(6); // the first one may have had no token, or all of them, on the way
      expect(waiting.get(1)).toBe(6);
      expect(waiting.get(2) ?? 0).toBeLessThan(2); // some have more room than they are asked for
      const dropped = drain(sampler.generate([request([5])])).then(
        (whole) => expect(whole.get(5)?.tokens).toHaveLength(6), // it had ended before
        (error: unknown) => expect(error).toMatchObject({ code: 'WeightsMoved' }),
      );
      await sampler.pause();
      await dropped;
      await sampler.resume();
      expect((await drain(sampler.generate([request([6])]))).get(6)?.tokens).toHaveLength(6);
    });

    it('frees the samples of a caller that stops reading', async () => {
      const sampler = await samplerWith(await policy(10), { maxSeqs: 1, maxModelLen: 16 });
      for await (const _ of sampler.generate([request([1])])) break;
      expect((await drain(sampler.generate([request([2])]))).get(2)?.tokens).toHaveLength(6);
    });

    it('refuses a request that can never fit', async () => {
      const sampler = await samplerWith(await policy(11), { maxSeqs: 1, maxModelLen: 8 });
      await expect(drain(sampler.generate([request([1], 100)]))).rejects.toMatchObject({ code: 'InvalidInput' });
    });
  });

  describe(`${name}: a sampler with weights of its own`, () => {
    it('names the weights that it has loaded by their digest', async () => {
      const [one, two] = [await policy(8), await policy(9)];
      const sampler = await lent.take('fp32');
      for (const engine of [one, two, one])
        expect(await sampler.use(await publicationOf(engine), { format: 'F32', hash: 'blake3' })).toBe(
          await rootOf(engine, 'weights', 'blake3'),
        );
    });

    it('gives the bytes of the weights that it has loaded, if it can, in any ranges', async () => {
      const sampler = await lent.take('fp32');
      for (const seed of [8, 9]) {
        const engine = await policy(seed);
        await sampler.use(await publicationOf(engine), { format: 'F32', hash: 'blake3' });
        if (sampler.readPublished === undefined) continue;
        const bytes = new Uint8Array(publishedBytes(engine.parameters, 'F32'));
        await engine.readPublished('F32', 0, bytes);
        for (const [start, end] of [
          [0, bytes.length],
          [101, bytes.length - 7],
          [bytes.length - 1, bytes.length],
        ] as const) {
          const found = new Uint8Array(end - start);
          await sampler.readPublished('F32', start, found);
          expect(Buffer.from(found).equals(bytes.subarray(start, end)), `[${start}, ${end})`).toBe(true);
        }
      }
    });

    it('samples with the model’s own log-probs, also after it has other weights', async () => {
      const engine = await policy(8);
      const sampler = await samplerWith(engine, { maxSeqs: 4, maxModelLen: 16 });
      for (const round of [0, 1]) {
        if (round === 1) {
          await learn(engine);
          await sampler.use(await publicationOf(engine), { format: 'F32', hash: 'blake3' });
        }
        for (const [key, { tokens, logProbs }] of await drain(sampler.generate([request([1, 2, 3])]))) {
          const own = await scored(engine, prompt, tokens);
          const where = `round ${round}, sample ${key}`;
          if (sameBits) expect(own, where).toEqual(logProbs);
          // Another engine sums in another order.
          else own.forEach((value, t) => expect(value, where).toBeCloseTo(at(logProbs, t), 4));
        }
      }
    });
  });

  describe(`${name}: a sampler that filters tokens`, () => {
    const settings = { temperature: 0.7, topK: 5, topP: 0.9, minP: 0.01, repetitionPenalty: 1 };

    it.each([
      ['at a temperature', settings],
      ['with a penalty', { ...settings, repetitionPenalty: 1.3 }],
      ['with no choice', { ...settings, temperature: 0, topP: 1 }],
    ])('gives the log-probs of the model and of what is left: %s', async (_, given) => {
      const engine = await policy(13);
      const sampler = await samplerWith(engine, { maxSeqs: 4, maxModelLen: 16 });
      const sampled = drain(sampler.generate([{ ...request([1, 2, 3, 4]), sampling: given }]));
      if (!reports(given)) return expect(sampled).rejects.toMatchObject({ code: 'WrongServer' });
      const samples = await sampled;
      for (const { tokens, logProbs, samplingLogProbs } of samples.values()) {
        const own = await scored(engine, prompt, tokens, given.temperature || 1);
        own.forEach((value, t) => expect(value).toBeCloseTo(at(logProbs, t), 4));
        if (given.temperature === 0) expect(samplingLogProbs).toEqual(samplingLogProbs.map(() => 0));
        else if (given.repetitionPenalty === 1)
          samplingLogProbs.forEach((value, t) => expect(value).toBeGreaterThan(at(logProbs, t)));
      }
    });

    it('goes on from a prefix, to the tokens that are left', async () => {
      const sampler = await samplerWith(await policy(13), { maxSeqs: 4, maxModelLen: 16 });
      const [sample] = request([1]).samples;
      if (sample === undefined) throw new Error('no sample');
      const continued = { ...sample, prefix: Int32Array.of(1, 2, 3, 4) };
      const samples = await drain(sampler.generate([{ ...request([1]), samples: [continued] }]));
      expect(samples.get(1)?.tokens).toHaveLength(2);
    });
  });

  describe.runIf(sampling.facts().randomness === 'counter')(`${name}: a sampler whose random bits are counters`, () => {
    it('gives a sample the same tokens whatever else is sampled', async () => {
      const sampler = await samplerWith(await policy(9), { maxSeqs: 2, maxModelLen: 16 });
      const together = await drain(sampler.generate([request([1, 2, 3, 4])]));
      expect((await drain(sampler.generate([request([3])]))).get(3)).toEqual(together.get(3));
      const [odd, even] = await Promise.all(
        [
          [1, 3],
          [2, 4],
        ].map((keys) => drain(sampler.generate([request(keys)]))),
      );
      expect(new Map([...(odd ?? []), ...(even ?? [])].sort(([a], [b]) => a - b))).toEqual(together);
    });
  });
}

/** The weights of a policy, as a sampler loads them. */
export async function publicationOf(engine: PolicyEngine): Promise<StateSource> {
  const bytes = new Uint8Array(publishedBytes(engine.parameters, 'F32'));
  await engine.readPublished('F32', 0, bytes);
  return { type: 'published', format: 'F32', read: async (sinkOf) => sinkOf(0, bytes.length)(bytes) };
}

export interface Sampled {
  readonly tokens: number[];
  readonly logProbs: number[];
  readonly samplingLogProbs: number[];
}

/** The samples of a stream. */
export async function drain(stream: AsyncIterable<DecodedTokens>): Promise<Map<number, Sampled>> {
  const samples = new Map<number, Sampled>();
  for await (const { keys, tokens, logProbs, samplingLogProbs } of stream)
    keys.forEach((key, j) => {
      const sample = samples.get(key) ?? { tokens: [], logProbs: [], samplingLogProbs: [] };
      sample.tokens.push(at(tokens, j));
      sample.logProbs.push(at(logProbs, j));
      if (samplingLogProbs !== undefined) sample.samplingLogProbs.push(at(samplingLogProbs, j));
      samples.set(key, sample);
    });
  return new Map([...samples].sort(([a], [b]) => a - b));
}

/** The log-probs of a response as a forward pass gives them. */
export async function scored(
  engine: PolicyEngine,
  prompt: Int32Array,
  response: readonly number[],
  temperature = 1,
): Promise<number[]> {
  const tokens_N = Int32Array.from([...prompt, ...response]);
  const { outputs } = await forwardOne(
    engine,
    {
      tokens_N,
      cuSeqlens: Int32Array.of(0, tokens_N.length),
      positions_P: Int32Array.from(response, (_, t) => prompt.length - 1 + t),
      targets_P: Int32Array.from(response),
    },
    { temperature, wants: ['logProbs'], keep: false },
  );
  return [...outputs.logProbs];
}
