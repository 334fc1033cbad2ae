/** Laws that hold for every estimator of the registry, and for every one of a kind. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvalidInputError } from '../../errors.ts';
import { ADVANTAGE_NAMES, type AdvantageName, type AdvantageNeed } from '../names.ts';
import { raggedRows } from '../ragged.ts';
import { arbitrarySamples, batchOf, validRows, type ArbitrarySample } from './arbitrary.test-support.ts';
import { advantageEstimator, type AdvantageBatch, type AdvantageConfig } from './index.ts';

const RUNS = { numRuns: 50 };

const CONFIG: AdvantageConfig = { gamma: 0.9, lam: 0.8, gdpoRewardKeys: ['form', 'answer'] };

const FIELDS: Partial<Record<AdvantageNeed, keyof AdvantageBatch>> = {
  values: 'values_T',
  oldLogProbs: 'oldLogProb_T',
  sumPiSquared: 'sumPiSquared_T',
  greedyBaselines: 'greedyBaselines_S',
  components: 'components',
  processRewards: 'processRewards_T',
  promptValues: 'promptValues_S',
  episodes: 'episodes',
};

/** These drop a reward on a token with mask 0; the others add up the whole row. */
const DROPS_MASKED_REWARDS: readonly AdvantageName[] = [
  'gae',
  'vapo',
  'reinforce_plus_plus',
  'remax',
  'optimal_token_baseline',
  'tir_optimal_token_baseline',
];
const WHITENED: readonly AdvantageName[] = [
  'gae',
  'vapo',
  'prime',
  'gdpo',
  'reinforce_plus_plus',
  'reinforce_plus_plus_baseline',
];
const COMPARES_SCORES: readonly AdvantageName[] = [
  'grpo',
  'grpo_vectorized',
  'grpo_passk',
  'rloo',
  'rloo_vectorized',
  'opo',
  'reinforce_plus_plus_baseline',
];

const compute = (name: AdvantageName, batch: AdvantageBatch, config = CONFIG) =>
  advantageEstimator(name).compute(batch, config);

/** One value after the other; null (a masked token) only where null is wanted. */
function expectClose(got: readonly (number | null)[][], want: readonly (number | null)[][]) {
  const [values, wanted] = [got.flat(), want.flat()];
  const far = values.findIndex((value, i) => !isClose(value, wanted[i]));
  expect([values.length, far === -1 ? 'all close' : [values[far], wanted[far]]]).toEqual([wanted.length, 'all close']);
}

function isClose(value: number | null, wanted: number | null | undefined): boolean {
  if (value === null || wanted === null || wanted === undefined) return value === wanted;
  return Math.abs(value - wanted) < 1e-6 * (1 + Math.abs(wanted));
}

describe.each(ADVANTAGE_NAMES)('%s', (name) => {
  const estimator = advantageEstimator(name);

  test('has its own name, and finite advantages and returns on valid tokens', () => {
    expect(estimator.name).toBe(name);
    fc.assert(
      fc.property(arbitrarySamples, (samples) => {
        const batch = batchOf(samples);
        const { advantages_T, returns_T } = compute(name, batch);
        for (const values_T of [advantages_T, returns_T]) {
          expect(values_T.length).toBe(batch.rewards_T.length);
          expect(validRows(values_T, batch).flat()).not.toContain(NaN);
        }
      }),
      RUNS,
    );
  });

  test('gives each sample the same advantages in any order of the samples', () => {
    const shuffled = arbitrarySamples.chain((samples) =>
      fc.tuple(
        fc.constant(samples),
        fc.shuffledSubarray([...samples.keys()], { minLength: samples.length, maxLength: samples.length }),
      ),
    );
    fc.assert(
      fc.property(shuffled, ([samples, order]) => {
        const [batch, permuted] = [batchOf(samples), batchOf(order.map((s) => samples[s]!))];
        const [before, after] = [compute(name, batch), compute(name, permuted)];
        for (const key of ['advantages_T', 'returns_T'] as const) {
          const want = validRows(before[key], batch);
          expectClose(
            validRows(after[key], permuted),
            order.map((s) => want[s]!),
          );
        }
      }),
      RUNS,
    );
  });

  test('reads nothing at masked tokens but rewards', () => {
    fc.assert(
      fc.property(arbitrarySamples, (samples) => {
        const [batch, spoiled] = [batchOf(samples), batchOf(samples.map((one) => spoil(one, name)))];
        for (const key of ['advantages_T', 'returns_T'] as const) {
          expect(validRows(compute(name, spoiled)[key], batch)).toEqual(validRows(compute(name, batch)[key], batch));
        }
      }),
      RUNS,
    );
  });

  test('needs what it declares, and nothing else', () => {
    const samples = fc.sample(arbitrarySamples, { numRuns: 1, seed: 7 })[0]!;
    const { rows, rewards_T, groups_S, ...inputs } = batchOf(samples);
    const fields = estimator.needs.flatMap((need) => FIELDS[need] ?? []);
    const declared = Object.fromEntries(Object.entries(inputs).filter(([field]) => fields.some((f) => f === field)));
    const batch: AdvantageBatch = { rows, rewards_T, groups_S, ...declared };
    expect(() => compute(name, batch)).not.toThrow();
    for (const field of fields) {
      const error = refusal(() => compute(name, { ...batch, [field]: undefined }));
      expect(error.message).toContain(name);
      expect(error.message).toContain(field);
      expect(error.hint).toBeTruthy();
    }
  });

  test('refuses inputs of another length than the batch', () => {
    const samples = fc.sample(arbitrarySamples, { numRuns: 1, seed: 8 })[0]!;
    const batch: AdvantageBatch = batchOf(samples);
    const reads: (keyof AdvantageBatch)[] = estimator.needs.flatMap((need) => FIELDS[need] ?? []);
    for (const field of [...reads, ...(name === 'gdpo' ? [] : (['rewards_T'] as const))]) {
      const values = batch[field];
      if (!ArrayBuffer.isView(values) && !Array.isArray(values)) continue;
      const longer = { ...batch, [field]: [...(values as Float64Array), 0] };
      expect(refusal(() => compute(name, longer)).message).toMatch(
        / has \d+ (values|entries) for \d+ (tokens|samples)/,
      );
    }
  });

  test('gives nothing for an empty batch, or refuses to take statistics of it', () => {
    const empty = { ...batchOf([]), components: { form: [], answer: [] } };
    if (WHITENED.includes(name)) expect(refusal(() => compute(name, empty)).message).toContain('at least two');
    else if (name === 'spo') expect(refusal(() => compute(name, empty)).message).toContain('two samples');
    else expect(compute(name, empty).advantages_T).toEqual(new Float64Array());
  });
});

describe('an estimator that whitens', () => {
  test.each(WHITENED)('%s refuses a batch with a single valid token', (name) => {
    const samples = fc.sample(arbitrarySamples, { numRuns: 1, seed: 9 })[0]!.slice(0, 2);
    const one = batchOf(samples.map((sample) => ({ ...sample, group: 0, tokens: [sample.tokens[0]!] })));
    const batch = { ...one, rows: raggedRows([1, 1], [1, 0]) };
    expect(refusal(() => compute(name, batch)).message).toContain('at least two valid positions, got 1');
  });
});

describe('an estimator that compares the scores of a group', () => {
  test.each(COMPARES_SCORES)('%s does not change when all scores of a group shift', (name) => {
    const shift = fc.double({ min: -3, max: 3, noNaN: true });
    fc.assert(
      fc.property(arbitrarySamples, shift, (samples, amount) => {
        const batch = batchOf(samples);
        const shifted = batchOf(samples.map((one) => (one.group === 0 ? rewardMore(one, amount) : one)));
        const config = { ...CONFIG, normAdvByStdInGrpo: false };
        expectClose(
          validRows(compute(name, shifted, config).advantages_T, shifted),
          validRows(compute(name, batch, config).advantages_T, batch),
        );
      }),
      RUNS,
    );
  });

  test.each([...COMPARES_SCORES, 'gpg', 'prime'] as const)('%s gives 0 to a group of equal scores, exactly', (name) => {
    const rows = raggedRows([2, 1, 3, 1, 2]);
    const rewards_T = Float64Array.of(0, 0.23, 0.23, 0, 0, 0.23, 0.23, 0, 0.23);
    const batch = { rows, rewards_T, groups_S: ['g', 'g', 'g', 'g', 'g'] };
    const { advantages_T } = compute(name, batch, { rewardDpoCoef: 0 });
    for (const advantage of advantages_T) expect(Math.abs(advantage)).toBeLessThan(name === 'prime' ? 1e-7 : 1e-300);
  });
});

/** Values at mask 0 that would show wherever they are used. */
function spoil(sample: ArbitrarySample, name: AdvantageName): ArbitrarySample {
  const dropsReward = DROPS_MASKED_REWARDS.includes(name);
  const tokens = sample.tokens.map((token) => {
    if (token.mask !== 0) return token;
    const reward = dropsReward ? NaN : token.reward;
    return { mask: 0, reward, value: NaN, logProb: NaN, sumPiSquared: NaN, importance: NaN, processReward: NaN };
  });
  return { ...sample, tokens };
}

function rewardMore(sample: ArbitrarySample, amount: number): ArbitrarySample {
  const [first, ...others] = sample.tokens;
  return { ...sample, tokens: [{ ...first!, reward: first!.reward + amount }, ...others] };
}

function refusal(run: () => unknown): InvalidInputError {
  try {
    run();
  } catch (error) {
    if (error instanceof InvalidInputError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}
