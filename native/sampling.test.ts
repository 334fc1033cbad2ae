import { describe, expect, test } from 'vitest';
import { InvalidInputError, PauseError } from '../core/errors.ts';
import type { SamplingSettings } from '../core/sampling-settings.ts';
import { PLAIN, randomInteger, randomNumbers } from './testing/generation.ts';
import { logProbEntropy, philox, processLogits, sampleToken } from './sampling.ts';

/** The filters in double precision and by full sorts: what src/sampling.cpp must agree with. */
function reference(logits_V: Float32Array, s: SamplingSettings, seen: Int32Array): number[] {
  const scale = Math.fround(1 / s.temperature);
  const penalty = Math.fround(s.repetitionPenalty);
  const scores = Array.from(logits_V, (x, token) => {
    const penalized = !seen.includes(token) ? x : Math.fround(x < 0 ? x * penalty : x / penalty);
    return Math.fround(penalized * scale);
  });
  const keepTop = [...scores].sort((a, b) => b - a)[s.topK - 1] ?? -Infinity;
  if (s.topK > 0) scores.forEach((score, i) => (scores[i] = score < keepTop ? -Infinity : score));
  if (s.topP < 1) dropTail(scores, s.topP);
  const max = Math.max(...scores);
  if (s.minP > 0) scores.forEach((score, i) => (scores[i] = Math.exp(score - max) < s.minP ? -Infinity : score));
  return scores;
}

function dropTail(scores: number[], topP: number): void {
  const max = Math.max(...scores);
  const total = scores.reduce((sum, score) => sum + Math.exp(score - max), 0);
  const ascending = scores.map((_, i) => i).sort((a, b) => at(scores, a) - at(scores, b) || a - b);
  let cumulative = 0;
  for (const token of ascending.slice(0, -1)) {
    cumulative += Math.exp(at(scores, token) - max) / total;
    if (cumulative > 1 - topP) break;
    scores[token] = -Infinity;
  }
}

function at(values: ArrayLike<number>, i: number): number {
  return values[i] ?? NaN;
}

function softmax(scores: readonly number[]): number[] {
  const max = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - max));
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / total);
}

function randomLogits(random: () => number, vocab: number): Float32Array {
  const spread = 10 ** (2 * random() - 0.5);
  const steps = random() < 0.3 ? 4 : 0; // coarse values, so that ties are many
  return Float32Array.from({ length: vocab }, () => {
    const x = (random() + random() + random() - 1.5) * spread;
    return steps > 0 ? Math.round(x * steps) / steps : x;
  });
}

function randomSettings(random: () => number, vocab: number): SamplingSettings {
  return {
    temperature: 0.3 + 1.5 * random(),
    topK: random() < 0.5 ? randomInteger(random, 1, vocab) : 0,
    topP: random() < 0.6 ? random() : 1,
    minP: random() < 0.4 ? random() * 0.3 : 0,
    repetitionPenalty: random() < 0.4 ? 0.7 + random() : 1,
  };
}

test('philox gives the published known answers', () => {
  const words = (...values: number[]) => Uint32Array.of(...values);
  const ones = 0xffffffff;
  expect(philox(words(0, 0, 0, 0), words(0, 0))).toEqual(words(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  expect(philox(words(ones, ones, ones, ones), words(ones, ones))).toEqual(
    words(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd),
  );
  expect(philox(words(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), words(0xa4093822, 0x299f31d0))).toEqual(
    words(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1),
  );
});

describe('the filters', () => {
  test.each([1, 2, 3, 4])('keep the tokens that full sorts in double precision keep (seed %i)', (seed) => {
    const random = randomNumbers(seed);
    for (let round = 0; round < 60; round++) {
      const vocab = randomInteger(random, 1, round % 10 === 0 ? 5000 : 300);
      const logits = randomLogits(random, vocab);
      const settings = randomSettings(random, vocab);
      const seen = Int32Array.from({ length: randomInteger(random, 0, 9) }, () => randomInteger(random, 0, vocab - 1));
      const got = processLogits(logits, settings, seen);
      const want = reference(logits, settings, seen);
      const differ = want.filter((score, i) => (at(got, i) === -Infinity) !== (score === -Infinity)).length;
      expect(differ, `round ${round}: vocab ${vocab}, ${JSON.stringify(settings)}`).toBe(0);
      want.forEach((score, i) =>
        expect(Math.abs(at(got, i) - score) <= 1e-5 * Math.abs(score) || score === -Infinity).toBe(true),
      );
    }
  });

  test('keep all ties with the k-th value', () => {
    expect([...processLogits(Float32Array.of(1, 3, 2, 2, 2, 0), { ...PLAIN, topK: 2 })]).toEqual([
      -Infinity,
      3,
      2,
      2,
      2,
      -Infinity,
    ]);
    expect([...processLogits(new Float32Array(40).fill(1.5), { ...PLAIN, topK: 3 })]).toEqual(new Array(40).fill(1.5));
  });

  test('drop equal tokens in ascending order of their ids under top-p, and keep the last one', () => {
    const equal = Float32Array.of(1, 1, 1, 1);
    expect([...processLogits(equal, { ...PLAIN, topP: 0.6 })]).toEqual([-Infinity, 1, 1, 1]);
    expect([...processLogits(equal, { ...PLAIN, topP: 0 })]).toEqual([-Infinity, -Infinity, -Infinity, 1]);
    expect([...processLogits(Float32Array.of(5, 1, 5, 1), { ...PLAIN, topP: 0 })]).toEqual([
      -Infinity,
      -Infinity,
      5,
      -Infinity,
    ]);
  });

  test('refuse logits that are NaN, infinite or nothing', () => {
    for (const bad of [
      [1, NaN, 2],
      [1, Infinity],
      [-Infinity, -Infinity],
    ]) {
      expect(() => processLogits(Float32Array.from(bad), PLAIN)).toThrow(PauseError);
      expect(() =>
        sampleToken(
          Float32Array.from(bad),
          { ...PLAIN, temperature: 0 },
          { seed: [1, 2], draw: 0, sample: 0, turn: 0 },
          0,
        ),
      ).toThrow(PauseError);
    }
    expect(() => processLogits(Float32Array.of(1), { ...PLAIN, minP: 2 })).toThrow(InvalidInputError);
    expect(() => processLogits(Float32Array.of(1), PLAIN, Int32Array.of(1))).toThrow(/outside the vocabulary/);
  });
});

describe('a draw', () => {
  const draws = 20_000;
  const settings: readonly SamplingSettings[] = [
    PLAIN,
    { ...PLAIN, temperature: 0.6 },
    { ...PLAIN, temperature: 1.7, topK: 7 },
    { ...PLAIN, topP: 0.8 },
    { ...PLAIN, minP: 0.1, repetitionPenalty: 1.4 },
    { temperature: 1.2, topK: 20, topP: 0.9, minP: 0.02, repetitionPenalty: 1.2 },
  ];

  test.each(settings.map((s, i) => [i + 101, s] as const))('follows the filtered distribution (seed %i)', (seed, s) => {
    const random = randomNumbers(seed);
    const logits = randomLogits(random, 37);
    const seen = Int32Array.of(1, 5, 5, 30);
    const probabilities = softmax([...processLogits(logits, s, seen)]);
    const counts = new Array<number>(37).fill(0);
    for (let i = 0; i < draws; i++) {
      const { token, samplingLogProb } = sampleToken(
        logits,
        s,
        { seed: [seed, 9], draw: i, sample: 3, turn: 1 },
        17,
        seen,
      );
      counts[token] = at(counts, token) + 1;
      expect(Math.abs(samplingLogProb - Math.log(at(probabilities, token)))).toBeLessThan(
        1e-5 * (1 + Math.abs(samplingLogProb)),
      );
    }
    expect(chiSquare(counts, probabilities)).toBeLessThan(0);
  });

  /**
   * Excess over the 99.99 % point (Wilson and Hilferty's approximation); above 0 the draws do not fit. Cells expected
   * below 5 are put together.
   */
  function chiSquare(counts: readonly number[], probabilities: readonly number[]): number {
    const cells = counts.map((count, i) => ({ count, expected: at(probabilities, i) * draws }));
    expect(cells.filter(({ count, expected }) => expected === 0 && count > 0)).toEqual([]);
    const rare = cells.filter(({ expected }) => expected < 5);
    const rest = { count: rare.reduce((a, b) => a + b.count, 0), expected: rare.reduce((a, b) => a + b.expected, 0) };
    const used = [...cells.filter(({ expected }) => expected >= 5), ...(rest.expected >= 5 ? [rest] : [])];
    const statistic = used.reduce((sum, { count, expected }) => sum + (count - expected) ** 2 / expected, 0);
    const freedom = Math.max(1, used.length - 1);
    return statistic - freedom * (1 - 2 / (9 * freedom) + 3.72 * Math.sqrt(2 / (9 * freedom))) ** 3;
  }

  test('depends on every part of its counter', () => {
    const logits = new Float32Array(5000);
    const base = { seed: [1, 2] as const, draw: 3, sample: 4, turn: 5 };
    const token = (
      random: typeof base | { seed: readonly [number, number]; draw: number; sample: number; turn: number },
      position: number,
    ) => sampleToken(logits, PLAIN, random, position).token;
    const others = [
      token({ ...base, seed: [7, 2] }, 6),
      token({ ...base, seed: [1, 7] }, 6),
      token({ ...base, draw: 7 }, 6),
      token({ ...base, sample: 7 }, 6),
      token({ ...base, turn: 7 }, 6),
      token(base, 7),
    ];
    expect(others).not.toContain(token(base, 6));
    expect(token(base, 6)).toBe(token(base, 6));
  });

  test('never takes a token without probability', () => {
    const logits = Float32Array.from({ length: 600 }, (_, i) => (i === 300 || i === 599 ? 0 : -Infinity));
    for (let i = 0; i < 300; i++) {
      const { token, logProb } = sampleToken(logits, PLAIN, { seed: [1, 1], draw: i, sample: 0, turn: 0 }, 0);
      expect([300, 599]).toContain(token);
      expect(logProb).toBeCloseTo(-Math.LN2, 6);
    }
  });

  test('is greedy at temperature 0: the lowest id of the greatest logit, after the repetition penalty', () => {
    const greedy = { ...PLAIN, temperature: 0 };
    const random = { seed: [1, 2] as const, draw: 0, sample: 0, turn: 0 };
    expect(sampleToken(Float32Array.of(1, 4, 4, 2), greedy, random, 0)).toMatchObject({ token: 1, samplingLogProb: 0 });
    expect(
      sampleToken(Float32Array.of(1, 4, 4, 2), { ...greedy, repetitionPenalty: 2 }, random, 0, Int32Array.of(1)).token,
    ).toBe(2);
  });
});

test('log-prob and entropy of a label are those of the definition, at sizes around multiples of 16', () => {
  const random = randomNumbers(5);
  for (const vocab of [1, 2, 15, 16, 17, 255, 256, 257, 1000]) {
    const logits = randomLogits(random, vocab);
    const temperature = 0.5 + random();
    const label = randomInteger(random, 0, vocab - 1);
    const p = softmax(Array.from(logits, (x) => x / temperature));
    const entropy = -p.reduce((sum, q) => sum + (q > 0 ? q * Math.log(q) : 0), 0);
    const got = logProbEntropy(logits, label, temperature);
    expect(Math.abs(got.entropy - entropy)).toBeLessThan(1e-4);
    expect(Math.abs(got.sumPiSquared - p.reduce((sum, q) => sum + q * q, 0))).toBeLessThan(1e-5);
    if (at(p, label) > 1e-30)
      expect(Math.abs(got.logProb - Math.log(at(p, label)))).toBeLessThan(2e-5 * (1 + Math.abs(got.logProb)));
    expect(got.greedy).toBe(logits.indexOf(logits.reduce((a, b) => Math.max(a, b))));
  }
});
