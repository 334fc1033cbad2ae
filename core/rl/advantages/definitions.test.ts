/** Each estimator against its definition on small batches, and the edges that its file describes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { raggedRows } from '../ragged.ts';
import { arbitrarySamples, batchOf } from './arbitrary.test-support.ts';
import { advantageEstimator, type AdvantageBatch, type AdvantageConfig } from './index.ts';

/** One token per sample. */
function outcomes(name: string, scores: readonly number[], groups: readonly unknown[], config: AdvantageConfig = {}) {
  const batch = { rows: raggedRows(scores.map(() => 1)), rewards_T: scores, groups_S: groups };
  return [...advantageEstimator(name).compute(batch, config).advantages_T];
}

function computed(name: string, batch: AdvantageBatch, config: AdvantageConfig = {}) {
  const { advantages_T, returns_T } = advantageEstimator(name).compute(batch, config);
  return { advantages: [...advantages_T], returns: [...returns_T] };
}

const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 9));

describe('gae', () => {
  test('with gamma 1, lambda 1 and values 0 returns the sum of the rewards that follow', () => {
    fc.assert(
      fc.property(arbitrarySamples, (samples) => {
        const batch = { ...batchOf(samples), values_T: new Float64Array(samples.flatMap((s) => s.tokens).length) };
        const { returns } = computed('gae', batch);
        const sums = samples.flatMap(({ tokens }) =>
          tokens.map((_, t) => tokens.slice(t).reduce((sum, { mask, reward }) => sum + mask * reward, 0)),
        );
        expect(returns).toEqual(close(sums));
      }),
    );
  });

  test('with lambda 0 gives one-step errors, and lets masked tokens carry the next advantage', () => {
    const rows = raggedRows([4], [1, 0, 1, 1]);
    const batch = { rows, rewards_T: [0, 9, 0, 1], values_T: [0.5, 9, 0.25, 0.75], groups_S: ['g'] };
    const { advantages, returns } = computed('gae', batch, { gamma: 1, lam: 0 });
    expect(returns).toEqual(close([0.25, 9.5, 0.75, 1]));
    expect(advantages[1]).toBe(advantages[2]);
  });
});

describe('rloo', () => {
  test('subtracts the mean of the other samples of the group', () => {
    const scores = [1, 0, 0.5, 2, -1];
    const groups = ['a', 'a', 'a', 'b', 'b'];
    const wanted = scores.map((score, s) => {
      const others = scores.filter((_, i) => i !== s && groups[i] === groups[s]);
      return score - others.reduce((sum, other) => sum + other, 0) / others.length;
    });
    expect(outcomes('rloo', scores, groups)).toEqual(close(wanted));
    expect(outcomes('rloo_vectorized', scores, groups)).toEqual(close(wanted));
  });

  test('keeps the score of a group of one, and the vectorised form gives it 0', () => {
    expect(outcomes('rloo', [0.7], ['a'])).toEqual([0.7]);
    expect(outcomes('rloo_vectorized', [0.7], ['a'])).toEqual([0]);
  });
});

describe('grpo_passk', () => {
  test('gives the best sample its margin, and 0 to the others', () => {
    const config = { normAdvByStdInGrpo: false };
    expect(outcomes('grpo_passk', [0.25, 1, 0.5], ['a', 'a', 'a'], config)).toEqual([0, 0.5, 0]);
    expect(outcomes('grpo_passk', [-3, -1], ['a', 'a'], config)).toEqual([0, 2]);
  });

  test('gives 0 to all when two samples are best, and refuses a group of one by name', () => {
    expect(outcomes('grpo_passk', [1, 0, 1], ['a', 'a', 'a'])).toEqual([0, 0, 0]);
    expect(() => outcomes('grpo_passk', [1, 0, 1], ['a', 'a', 'b'])).toThrow(/the group b has only one/);
  });
});

describe('opo', () => {
  test('weights the baseline by valid tokens', () => {
    const batch = { rows: raggedRows([3, 2], [1, 1, 1, 1, 0]), rewards_T: [0, 0, 1, 0, 0], groups_S: ['g', 'g'] };
    expect(computed('opo', batch).advantages).toEqual([0.25, 0.25, 0.25, -0.75, 0]);
  });

  test('gives 0 to a group without a valid token', () => {
    const batch = { rows: raggedRows([1, 1], [0, 0]), rewards_T: [1, 0], groups_S: ['g', 'g'] };
    expect(computed('opo', batch).advantages).toEqual([0, 0]);
  });
});

describe('gpg', () => {
  test('scales by the share of scores that are not 0, counted before the mean is subtracted', () => {
    expect(outcomes('gpg', [1, 0, 0, 0], ['a', 'a', 'b', 'b'])).toEqual([2, -2, 0, 0]);
    expect(outcomes('gpg', [1, 0, 0, 0], ['a', 'a', 'b', 'b'], { fNorm: 2 })).toEqual([1, -1, 0, 0]);
    expect(outcomes('gpg', [0, 0], ['a', 'a'])).toEqual([0, 0]);
  });
});

describe('reinforce_plus_plus', () => {
  test('discounts over valid tokens only, and whitens to mean 0 and variance 1', () => {
    const batch = { rows: raggedRows([4, 1], [1, 0, 1, 1, 1]), rewards_T: [0, 5, 0, 1, 0], groups_S: [0, 1] };
    const { advantages, returns } = computed('reinforce_plus_plus', batch, { gamma: 0.5 });
    expect(returns).toEqual([0.25, 0, 0.5, 1, 0]);
    const valid = advantages.filter((_, t) => t !== 1);
    expect(advantages[1]).toBe(0);
    expect(valid.reduce((sum, a) => sum + a, 0)).toBeCloseTo(0, 6);
    expect(valid.reduce((sum, a) => sum + a * a, 0) / (valid.length - 1)).toBeCloseTo(1, 6);
  });
});

describe('remax', () => {
  test('subtracts the greedy score from the reward to go, at valid tokens only', () => {
    const rows = raggedRows([3], [1, 0, 1]);
    const batch = { rows, rewards_T: [0, 7, 1], groups_S: ['g'], greedyBaselines_S: [0.25] };
    expect(computed('remax', batch)).toEqual({ advantages: [0.75, 1, 0.75], returns: [1, 1, 1] });
  });
});

describe('the optimal token baselines', () => {
  const certain = (batch: AdvantageBatch): AdvantageBatch => {
    const tokens = batch.rewards_T.length;
    return {
      ...batch,
      oldLogProb_T: new Float64Array(tokens).fill(-Infinity),
      sumPiSquared_T: new Float64Array(tokens),
    };
  };

  test('weight the returns of a group at each position', () => {
    const batch = certain({ rows: raggedRows([2, 2]), rewards_T: [0, 1, 0, 0], groups_S: ['g', 'g'] });
    for (const name of ['optimal_token_baseline', 'tir_optimal_token_baseline']) {
      expect(computed(name, batch).advantages).toEqual([0.5, 0.5, -0.5, -0.5].map((a) => expect.closeTo(a, 6)));
    }
    const weighted = { ...batch, rolloutIsWeights_T: [Math.sqrt(3), 1, 1, 1] };
    expect(computed('optimal_token_baseline', weighted).advantages[0]).toBeCloseTo(0.25, 6);
  });

  test('are 0 where only the longest response is left, if it is the only longest', () => {
    const batch = certain({ rows: raggedRows([3, 1]), rewards_T: [0, 0, 1, 0], groups_S: ['g', 'g'] });
    expect(computed('optimal_token_baseline', batch).advantages[2]).toBe(1);
    const kept = computed('optimal_token_baseline', batch, { handleZeroTail: false });
    expect(kept.advantages[2]).toBeCloseTo(0, 6);
  });

  test('differ where turns have different lengths: only the form for tools compares the n-th valid tokens', () => {
    const rows = raggedRows([3, 3], [1, 0, 1, 1, 1, 0]);
    const batch = certain({ rows, rewards_T: [0, 0, 1, 0, 0, 0], groups_S: ['g', 'g'] });
    expect(computed('tir_optimal_token_baseline', batch).advantages[2]).toBeCloseTo(0.5, 6);
    expect(computed('optimal_token_baseline', batch).advantages[2]).toBeCloseTo(0, 6);
  });

  test('leave a response without a valid token out of the group only in the form for tools', () => {
    const rows = raggedRows([2, 1], [1, 1, 0]);
    const batch = certain({ rows, rewards_T: [0, 1, 0], groups_S: ['g', 'g'] });
    expect(computed('tir_optimal_token_baseline', batch, { handleZeroTail: false }).advantages).toEqual([1, 1, 0]);
    expect(computed('optimal_token_baseline', batch, { handleZeroTail: false }).advantages[0]).toBeCloseTo(0, 6);
  });
});

describe('gdpo', () => {
  const batch = (components: AdvantageBatch['components']): AdvantageBatch => ({
    rows: raggedRows([1, 2, 1]),
    rewards_T: [0, 0, 0, 0],
    groups_S: ['g', 'g', 'g'],
    components,
  });
  const both = { small: [0, 0.001, 0.002], large: [0, 2000, 1000], same: [1, 1, 1] };

  test('hides no component behind one with a wide range, and drops one that is constant', () => {
    const two = computed('gdpo', batch(both), { gdpoRewardKeys: ['small', 'large'] });
    const three = computed('gdpo', batch(both), { gdpoRewardKeys: ['small', 'large', 'same'] });
    const swapped = computed('gdpo', batch({ ...both, small: [0, 2, 4] }), { gdpoRewardKeys: ['small', 'large'] });
    expect(three).toEqual(two);
    expect(swapped.advantages).toEqual(two.advantages.map((a) => expect.closeTo(a, 2)));
  });

  test('does not change when all weights are doubled', () => {
    const gdpoRewardKeys = ['small', 'large'];
    const once = computed('gdpo', batch(both), { gdpoRewardKeys, gdpoRewardWeights: [1, 3] });
    const twice = computed('gdpo', batch(both), { gdpoRewardKeys, gdpoRewardWeights: [2, 6] });
    expect(twice.advantages).toEqual(once.advantages.map((a) => expect.closeTo(a, 6)));
  });

  test('says which component the scorer lacks, and which it gives', () => {
    const refused = (config: AdvantageConfig) => () => computed('gdpo', batch(both), config);
    expect(refused({ gdpoRewardKeys: ['format'] })).toThrow(
      expect.objectContaining({
        message: 'the scorer gives no component "format"',
        hint: 'it gives small, large, same',
      }),
    );
    expect(refused({ gdpoRewardKeys: ['toString'] })).toThrow(/no component "toString"/);
    expect(refused({ gdpoRewardKeys: [] })).toThrow(/names of the components/);
    expect(refused({ gdpoRewardKeys: ['small'], gdpoRewardWeights: [1, 2] })).toThrow(/2 weights for 1 components/);
  });
});

describe('spo', () => {
  test('normalises the surplus over the prompt values of the batch', () => {
    const rows = raggedRows([1, 2]);
    const batch = { rows, rewards_T: [1, 0, 0], groups_S: [0, 1], promptValues_S: [0.5, 0.5] };
    expect(computed('spo', batch).advantages).toEqual(
      [Math.SQRT1_2, -Math.SQRT1_2, -Math.SQRT1_2].map((a) => expect.closeTo(a, 6)),
    );
  });

  test('gives 0 when every prompt scores as expected, and refuses a batch of one', () => {
    const batch = { rows: raggedRows([1, 1]), rewards_T: [1, 1], groups_S: [0, 1], promptValues_S: [0.7, 0.7] };
    expect(computed('spo', batch).advantages).toEqual([0, 0]);
    const one = { rows: raggedRows([1]), rewards_T: [1], groups_S: [0], promptValues_S: [0.7] };
    expect(() => computed('spo', one)).toThrow(/two samples or more, got 1/);
  });
});

describe('prime', () => {
  test('adds the outcome, against the others of the group, on the last valid token', () => {
    const rows = raggedRows([3, 1], [1, 1, 0, 1]);
    const batch = { rows, rewards_T: [0, 1, 0, 0], groups_S: ['g', 'g'], processRewards_T: [0, 0, 9, 0] };
    const { returns } = computed('prime', batch, { rewardGtCoef: 2 });
    expect(returns).toEqual([2, 2, 0, -2]);
  });

  test('refuses a group of one, and does without process rewards when their coefficient is 0', () => {
    const batch = { rows: raggedRows([1, 1]), rewards_T: [1, 0], groups_S: ['a', 'b'] };
    expect(() => computed('prime', batch, { rewardDpoCoef: 0 })).toThrow(/the group a has only one/);
    const group = { ...batch, groups_S: ['a', 'a'] };
    expect(computed('prime', group, { rewardDpoCoef: 0 }).returns).toEqual([5, -5]);
    expect(() => computed('prime', group)).toThrow(/processRewards_T/);
  });

  test('counts a row without a valid token as 0', () => {
    const batch = { rows: raggedRows([2, 1], [1, 1, 0]), rewards_T: [0, 1, 0], groups_S: ['a', 'a'] };
    expect(computed('prime', { ...batch, processRewards_T: [1, 1, 7] }, { rewardGtCoef: 0 }).returns).toEqual([
      10, 5, 0,
    ]);
  });
});

describe('vapo', () => {
  test('uses a longer memory for longer responses, and none for short ones', () => {
    const rows = raggedRows([4, 1], [1, 1, 1, 1, 1]);
    const batch = { rows, rewards_T: [0, 0, 0, 1, 0], values_T: [0, 0, 0, 0, 0.5], groups_S: [0, 1] };
    const { returns } = computed('vapo', batch, { vapo: { alpha: 0.5 } });
    expect(returns).toEqual([1, 1, 1, 1, 0]);
    const [first, second, third, last] = computed('vapo', batch, { vapo: { alpha: 0.5 } }).advantages as number[];
    // λ = 1 − 1/(½·4) = ½: each token has half the advantage of the next.
    expect((second! - first!) / (last! - third!)).toBeCloseTo(1 / 4, 6);
  });
});

describe('gigpo', () => {
  const batch: AdvantageBatch = {
    rows: raggedRows([2, 1, 1, 1]),
    rewards_T: [0, 1, 1, 0, 0.5],
    groups_S: ['p', 'p', 'p', 'p'],
    episodes: {
      episodes_S: ['e', 'e', 'f', 'g'],
      steps_S: [1, 0, 0, 0],
      anchors_S: ['end', 'start', 'start', 'alone'],
    },
  };

  test('adds the advantage of the episode and that of the step among steps with the same anchor', () => {
    // Episodes: e = 2, f = 0, g = 0.5; returns from "start": e = 1 + ½·1, f = 0.
    const mean = 2.5 / 3;
    const { advantages } = computed('gigpo', batch, { gamma: 0.5 });
    expect(advantages).toEqual(close([2 - mean, 2 - mean, 2 - mean + 0.75, -mean - 0.75, 0.5 - mean]));
  });

  test('without the weight of the step compares episodes; per step row a long episode counts more', () => {
    const gigpo = { stepAdvantageW: 0, episodeStats: 'per_step_row' as const };
    const mean = 4.5 / 4;
    expect(computed('gigpo', batch, { gigpo }).advantages).toEqual(
      close([2 - mean, 2 - mean, 2 - mean, -mean, 0.5 - mean]),
    );
  });

  test('refuses an unknown mode with the known ones', () => {
    const gigpo = { mode: 'std' as 'mean_norm' };
    expect(() => computed('gigpo', batch, { gigpo })).toThrow(
      expect.objectContaining({ message: 'unknown gigpo.mode "std"', hint: 'one of mean_norm, mean_std_norm' }),
    );
  });
});
