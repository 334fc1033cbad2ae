import { describe, expect, test } from 'vitest';
import type { ComputeType } from '../core/parameters.ts';
import type { GenerateRequest } from '../core/ports/sampler.ts';
import type { NativeGenerator } from './generate.ts';
import type { NativeTrainer } from './trainer.ts';
import { InvalidInputError, PauseError } from '../core/errors.ts';
import { createGenerator } from './generate.ts';
import { engineInfo } from './index.ts';
import {
  DETERMINISTIC,
  generate,
  isIdle,
  PLAIN,
  randomShape,
  randomInteger,
  randomModel,
  randomNumbers,
  randomPrompt,
  request,
  runUntilIdle,
  stepInto,
  type Response,
} from './testing/generation.ts';
import { decoder } from './testing/decoders.ts';

const SEEDS = [1, 2, 3, 4, 5, 6];
const WIDE = { maxSeqs: 64, maxModelLen: 200 };

/** A model of the seed's shape, and requests for it. */
function scene(seed: number, count = 12, options = DETERMINISTIC) {
  const random = randomNumbers(seed);
  const shape = randomShape(random);
  const config = decoder(shape);
  const trainer = randomModel(config, seed, options);
  const requests = Array.from({ length: count }, (_, i) =>
    request(randomPrompt(random, config.vocab, 70), 100 * i + 1, randomInteger(random, 1, 6), {
      maxNewTokens: randomInteger(random, 1, 40),
      sampling: { ...PLAIN, temperature: 0.5 + random() },
    }),
  );
  return { random, shape, config, trainer, requests };
}

/** Log-probs of a response as the trainer scores it. */
function scored(trainer: NativeTrainer, { prompt, sampling }: GenerateRequest, tokens: readonly number[]): number[] {
  const {
    outputs: { logProbs: logProbs_P },
  } = trainer.forward(
    {
      tokens_N: Int32Array.from([...prompt, ...tokens]),
      cuSeqlens: Int32Array.of(0, prompt.length + tokens.length),
      positions_P: Int32Array.from(tokens, (_, i) => prompt.length - 1 + i),
      targets_P: Int32Array.from(tokens),
    },
    { temperature: sampling.temperature, wants: ['logProbs'], keep: false },
  );
  return [...logProbs_P];
}

function only(requestOf: GenerateRequest, key: number, prefix: readonly number[] = []): GenerateRequest {
  const samples = requestOf.samples.filter((sample) => sample.key === key);
  return { ...requestOf, samples: samples.map((sample) => ({ ...sample, prefix: Int32Array.from(prefix) })) };
}

function withGenerator<T>(
  trainer: NativeTrainer,
  options: { maxSeqs: number; maxModelLen: number; kvPages?: number },
  use: (engine: NativeGenerator) => T,
): T {
  const engine = createGenerator(trainer, options);
  try {
    return use(engine);
  } finally {
    expect(isIdle(engine.stats) ? engine.stats.kvPagesUsed : 0, 'pages in use when idle').toBe(0);
    engine.close();
  }
}

/** Compute types under test: in bf16 the trainer attends in fp32 and the generator in bf16. */
const computes: readonly ComputeType[] = engineInfo().bf16 ? ['fp32', 'bf16'] : ['fp32'];

describe.each(computes)('in deterministic mode in %s', (compute) => {
  const options = { ...DETERMINISTIC, compute };

  test.each(SEEDS)(
    'log-probs are bitwise those of batches of 1, 7 and 64, and in fp32 of the trainer (seed %i)',
    (seed) => {
      const { trainer, requests } = scene(seed, 12, options);
      const [wide, seven, one] = [64, 7, 1].map((maxSeqs) =>
        withGenerator(trainer, { ...WIDE, maxSeqs }, (engine) => generate(engine, requests)),
      );
      expect(seven).toEqual(wide);
      expect(one).toEqual(wide);
      for (const requestOf of requests) {
        for (const { key } of requestOf.samples) {
          const response = wide?.get(key) as Response;
          if (compute === 'fp32') expect(response.logProbs).toEqual(scored(trainer, requestOf, response.tokens));
          expect(response.samplingLogProbs).toEqual(response.logProbs);
        }
      }
    },
  );

  test.each(SEEDS)('a sample that resumes after any number of its tokens continues identically (seed %i)', (seed) => {
    const { trainer, requests } = scene(seed, 2, options);
    withGenerator(trainer, WIDE, (engine) => {
      for (const requestOf of requests) {
        const whole = generate(engine, [requestOf]);
        for (const { key } of requestOf.samples) {
          const { tokens, logProbs, finish } = whole.get(key) as Response;
          for (let k = 1; k < tokens.length; k++) {
            const rest = generate(engine, [only(requestOf, key, tokens.slice(0, k))]).get(key) as Response;
            expect({ ...rest, samplingLogProbs: [] }).toEqual({
              tokens: tokens.slice(k),
              logProbs: logProbs.slice(k),
              samplingLogProbs: [],
              finish,
            });
          }
        }
      }
    });
  });

  test.each(SEEDS)('neither threads nor a prompt of its own change a sample (seed %i)', (seed) => {
    const { config, trainer, requests } = scene(seed, 4, options);
    const shared = withGenerator(trainer, WIDE, (engine) => generate(engine, requests));
    const single = randomModel(config, seed, { ...options, threads: 1 });
    expect(withGenerator(single, WIDE, (engine) => generate(engine, requests))).toEqual(shared);
    const alone = requests.flatMap((requestOf) => requestOf.samples.map(({ key }) => only(requestOf, key)));
    expect(withGenerator(trainer, WIDE, (engine) => generate(engine, alone))).toEqual(shared);
  });

  test.each(SEEDS)('samples do not notice that their neighbours are aborted (seed %i)', (seed) => {
    const { random, trainer, requests } = scene(seed, 12, options);
    const undisturbed = withGenerator(trainer, WIDE, (engine) => generate(engine, requests));
    const keys = requests.flatMap(({ samples }) => samples.map(({ key }) => key));
    const victims = new Set(keys.filter(() => random() < 0.4));
    withGenerator(trainer, { ...WIDE, maxSeqs: 9 }, (engine) => {
      for (const requestOf of requests) engine.submit(requestOf);
      const responses = new Map<number, Response>();
      for (const victim of victims) {
        stepInto(responses, engine);
        engine.abort(victim);
      }
      runUntilIdle(engine, responses);
      const survivors = keys.filter((key) => !victims.has(key));
      expect(survivors.map((key) => responses.get(key))).toEqual(survivors.map((key) => undisturbed.get(key)));
    });
  });

  test('a prompt longer than one step of prefill gives the log-probs of the trainer, and decoding continues during it', () => {
    const random = randomNumbers(21);
    const config = decoder({ ...randomShape(random), maxPositions: 4096 });
    const trainer = randomModel(config, 21);
    const long = request(
      Array.from({ length: 1301 }, () => randomInteger(random, 0, config.vocab - 1)),
      1,
      3,
    );
    const short = request([1, 2, 3], 50, 2);
    withGenerator(trainer, { maxSeqs: 8, maxModelLen: 1400 }, (engine) => {
      engine.submit(short);
      const responses = new Map<number, Response>();
      stepInto(responses, engine);
      engine.submit(long);
      expect([1, 2].map(() => stepInto(responses, engine))).toEqual([2, 2]);
      expect(stepInto(responses, engine)).toBe(5);
      runUntilIdle(engine, responses);
      for (const key of [1, 2, 3]) {
        const response = responses.get(key) as Response;
        expect(response.logProbs).toEqual(scored(trainer, long, response.tokens));
      }
    });
  });
});

describe.skipIf(!engineInfo().bf16)('in bf16 compute (skipped where the processor has no bf16 products)', () => {
  const shapes = [
    {},
    { heads: 14, kvHeads: 1, headDim: 64 },
    { heads: 9, kvHeads: 3, headDim: 128 },
    { heads: 2, kvHeads: 2, headDim: 40 },
  ];

  test.each(SEEDS)("log-probs stay near the trainer's, and samples resume (seed %i)", (seed) => {
    const { random, shape } = scene(seed, 0);
    const config = decoder({ ...shape, ...shapes[seed % shapes.length] });
    const trainer = randomModel(config, seed, { compute: 'bf16', deterministic: false, threads: 2 }, 0.3);
    const requests = Array.from({ length: 6 }, (_, i) =>
      request(randomPrompt(random, config.vocab, 100), 10 * i + 1, 4, { maxNewTokens: 50 }),
    );
    withGenerator(trainer, WIDE, (engine) => {
      const responses = generate(engine, requests);
      const gaps = requests.flatMap((requestOf) =>
        requestOf.samples.flatMap(({ key }) => {
          const { tokens, logProbs } = responses.get(key) as Response;
          expect(tokens).toHaveLength(50);
          return scored(trainer, requestOf, tokens).map((logProb, t) => Math.abs(logProb - (logProbs[t] ?? NaN)));
        }),
      );
      expect(Math.max(...gaps)).toBeLessThan(0.1);
      expect(gaps.reduce((a, b) => a + b) / gaps.length).toBeLessThan(0.01);
      const first = requests[0] as GenerateRequest;
      const resumed = generate(engine, [only(first, 1, (responses.get(1) as Response).tokens.slice(0, 30))]);
      expect(resumed.get(1)?.tokens).toHaveLength(20);
    });
  });

  test.each([2, 8, 16, 24, 32, 34, 48])("two threads never touch each other's heads (head width %i)", (headDim) => {
    const { random, shape } = scene(headDim, 0);
    const config = decoder({ ...shape, heads: 4, kvHeads: 4, headDim, hidden: 64, windows: [0] });
    const requests = Array.from({ length: 200 }, (_, i) =>
      request(randomPrompt(random, config.vocab, 9), i + 1, 1, { maxNewTokens: 4 }),
    );
    const responsesWith = (threads: number) => {
      const trainer = randomModel(config, headDim, { compute: 'bf16', deterministic: false, threads }, 0.3);
      const responses: Response[] = [];
      withGenerator(trainer, { maxSeqs: 200, maxModelLen: 13 }, (engine) =>
        responses.push(...generate(engine, requests).values()),
      );
      return responses;
    };
    const alone = responsesWith(1);
    for (let run = 0; run < 3; run++) expect(responsesWith(2)).toEqual(alone);
  });
});

test.each([31, 32, 33, 34])('after random submits, steps and aborts every page is back (seed %i)', (seed) => {
  const random = randomNumbers(seed);
  const shape = randomShape(random);
  const config = decoder(shape);
  const trainer = randomModel(config, seed);
  withGenerator(
    trainer,
    { maxSeqs: randomInteger(random, 1, 10), maxModelLen: 120, kvPages: randomInteger(random, 9, 40) },
    (engine) => {
      let nextKey = 1;
      for (let event = 0; event < 300; event++) {
        const kind = random();
        if (kind < 0.3 && engine.stats.waiting < 40) {
          const n = randomInteger(random, 1, 8);
          const more = { maxNewTokens: randomInteger(random, 1, 60), stopTokens: Int32Array.of(0, 3) };
          engine.submit(request(randomPrompt(random, config.vocab, 60), nextKey, n, more));
          nextKey += n;
        } else if (kind < 0.45) engine.abort(randomInteger(random, 1, nextKey));
        else if (kind < 0.46) engine.reset();
        else engine.step();
        const { live, freeSlots, kvPagesUsed, kvPagesTotal } = engine.stats;
        expect(live === 0 || kvPagesUsed > 0).toBe(true);
        expect(kvPagesUsed).toBeLessThanOrEqual(kvPagesTotal);
        expect(freeSlots).toBeGreaterThanOrEqual(0);
      }
      runUntilIdle(engine);
      expect(engine.stats.kvPagesUsed).toBe(0);
    },
  );
});

describe('a generator', () => {
  const random = randomNumbers(77);
  const config = decoder({ ...randomShape(random), vocab: 37 });
  const trainer = randomModel(config, 77);

  test('takes more samples than it has slots and pages for, and serves them first in, first out', () => {
    withGenerator(trainer, { maxSeqs: 3, maxModelLen: 64, kvPages: 9 }, (engine) => {
      const requests = Array.from({ length: 10 }, (_, i) => request([1 + i, 2, 3], 10 * i + 1, 4));
      for (const requestOf of requests) engine.submit(requestOf);
      expect(engine.stats).toMatchObject({ live: 0, waiting: 40, freeSlots: 3, kvPagesTotal: 9 });
      const finished: number[] = [];
      while (!isIdle(engine.stats)) {
        const { keys, finish } = engine.step();
        finished.push(...[...keys].filter((_, i) => finish[i] !== 0));
        expect(engine.stats.live).toBeLessThanOrEqual(3);
      }
      expect(finished).toEqual(requests.flatMap(({ samples }) => samples.map(({ key }) => key)));
      expect(engine.stats).toMatchObject({ decodedTokens: 40 * 20, prefilledTokens: 30 });
    });
  });

  test('ends a sample with its stop token, which is part of the response', () => {
    withGenerator(trainer, { maxSeqs: 8, maxModelLen: 100 }, (engine) => {
      const free = generate(engine, [request([5, 6], 1, 8, { maxNewTokens: 60 })]);
      const stop = free.get(1)?.tokens[5] as number;
      const stopped = generate(engine, [request([5, 6], 1, 8, { maxNewTokens: 60, stopTokens: Int32Array.of(stop) })]);
      for (const [key, { tokens }] of free) {
        const end = tokens.indexOf(stop);
        const expected = end < 0 ? tokens : tokens.slice(0, end + 1);
        expect(stopped.get(key)?.tokens).toEqual(expected);
        expect(stopped.get(key)?.finish).toBe(end < 0 ? 2 : 1);
      }
    });
  });

  test('drops everything on reset and then follows the new weights', () => {
    const own = randomModel(config, 78);
    withGenerator(own, { maxSeqs: 4, maxModelLen: 64 }, (engine) => {
      engine.submit(request([1, 2], 1, 6));
      engine.step();
      engine.reset();
      expect(engine.stats).toMatchObject({ live: 0, waiting: 0, kvPagesUsed: 0 });
      own.write('weights', trainer.read('weights'));
      own.weightsChanged();
      const followed = generate(engine, [request([1, 2], 1, 2)]);
      expect(followed).toEqual(
        withGenerator(trainer, { maxSeqs: 4, maxModelLen: 64 }, (other) => generate(other, [request([1, 2], 1, 2)])),
      );
    });
  });

  test('gives greedy samples the most probable token and a sampling log-prob of 0', () => {
    withGenerator(trainer, { maxSeqs: 4, maxModelLen: 64 }, (engine) => {
      const greedy = generate(engine, [request([4, 5, 6], 1, 2, { sampling: { ...PLAIN, temperature: 0 } })]);
      expect(greedy.get(2)).toEqual(greedy.get(1));
      expect(greedy.get(1)?.samplingLogProbs.every((value) => value === 0)).toBe(true);
      const plain = request([4, 5, 6], 1, 1);
      expect(greedy.get(1)?.logProbs).toEqual(scored(trainer, plain, greedy.get(1)?.tokens ?? []));
      const narrow = generate(engine, [request([4, 5, 6], 1, 1, { sampling: { ...PLAIN, topK: 1 } })]);
      expect(narrow.get(1)?.tokens).toEqual(greedy.get(1)?.tokens);
    });
  });

  test('returns empty arrays when idle, and ignores unknown keys', () => {
    withGenerator(trainer, { maxSeqs: 2, maxModelLen: 32 }, (engine) => {
      engine.abort(12345);
      expect(engine.step().keys).toHaveLength(0);
    });
  });

  test.each<[string, GenerateRequest, RegExp]>([
    [
      'is longer than maxModelLen',
      request([1, 2, 3], 1, 1, { maxNewTokens: 30 }),
      /prompt of 3 tokens \+ maxNewTokens 30 exceeds maxModelLen 32/,
    ],
    [
      'needs more pages than there are',
      request(new Array<number>(20).fill(1), 1, 1, { maxNewTokens: 12 }),
      /may need 3 KV pages of 16 positions, kvPages is 2/,
    ],
    ['has an empty prompt', request([], 1, 1), /prompt is empty/],
    ['has no samples', request([1], 1, 0), /no samples/],
    ['has a token outside the vocabulary', request([1, 37], 1, 1), /prompt contains token 37; the vocabulary has 37/],
    [
      'uses a key twice',
      { ...request([1], 1, 2), samples: [1, 2].flatMap(() => request([1], 9, 1).samples), maxNewTokens: 2 },
      /key 9 is already in use/,
    ],
    [
      'has a prefix that is complete',
      only(request([1], 1, 1, { maxNewTokens: 2 }), 1, [3, 4]),
      /prefix of sample 1 has 2 tokens/,
    ],
    [
      'has a prefix that was stopped',
      only(request([1], 1, 1, { stopTokens: Int32Array.of(4), maxNewTokens: 9 }), 1, [3, 4]),
      /contains stop token 4/,
    ],
    [
      'has a negative temperature',
      request([1], 1, 1, { sampling: { ...PLAIN, temperature: -1 } }),
      /temperature must be 0 \(greedy\) or above, got -1/,
    ],
  ])('refuses a request that %s', (_, bad, message) => {
    withGenerator(trainer, { maxSeqs: 2, maxModelLen: 32, kvPages: 2 }, (engine) => {
      expect(() => engine.submit(bad)).toThrow(InvalidInputError);
      expect(() => engine.submit(bad)).toThrow(message);
      expect(engine.stats.waiting).toBe(0);
    });
  });

  test('pauses when the logits are not finite, and is empty and usable afterwards', () => {
    const broken = randomModel(config, 79);
    const healthy = broken.read('weights');
    withGenerator(broken, { maxSeqs: 2, maxModelLen: 64 }, (engine) => {
      const before = generate(engine, [request([1, 2], 1, 2)]);
      broken.write('weights', new Float32Array(broken.elements).fill(NaN));
      broken.weightsChanged();
      engine.submit(request([1, 2], 1, 2));
      expect(() => engine.step()).toThrow(PauseError);
      expect(engine.stats).toMatchObject({ live: 0, waiting: 0, kvPagesUsed: 0 });
      broken.write('weights', healthy);
      broken.weightsChanged();
      expect(generate(engine, [request([1, 2], 1, 2)])).toEqual(before);
    });
  });
});
