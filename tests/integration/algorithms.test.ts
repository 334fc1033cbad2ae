/**
 * What algorithms promise beside their estimator and loss, in runs of two iterations; all pairs of those are in
 * pairs.test.ts.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runIssues } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { bothCorrections, recipeWith, soundMetrics, withLoss } from '../algorithm-recipes.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunOptions, ScoreFunction } from '../in-process-loop.ts';

const loop = new InProcessLoop(sevens);
beforeAll(() => loop.up());
afterAll(() => loop.remove());

const isRefused = (keys: Tree, path: string) => runIssues(recipeWith(keys)).some((issue) => issue.path === path);

/** Runs two iterations of two steps each; their metrics. */
async function trained(keys: Tree, options: RunOptions = {}): Promise<Record<string, number>[]> {
  const { iterations, weights } = await loop.completed(keys, options);
  expect(iterations).toHaveLength(2);
  expect(new Set(weights.slice(1)).size).toBe(2);
  return soundMetrics(iterations);
}

describe('a loss that reads groups', () => {
  it('measures the pairs that it compares', async () => {
    const metrics = await trained(withLoss('online_dpo'));
    expect(metrics[1]).toHaveProperty(['actor/dpo_accuracy']);
  });

  it('keeps the responses to a prompt in one micro-batch', async () => {
    const run = await loop.completed({
      ...withLoss('gvpo'),
      actor: { policy_loss: { loss_mode: 'gvpo' }, ppo_mini_batch_size: 4, ppo_max_token_len_per_gpu: 28 },
      trainer: { total_training_steps: 1 },
    });
    const [made] = run.iterations;
    const tensors = made?.batch.tensors ?? '';
    const batch = decodeBatch(await getBlob(loop.store, run.log.runId, tensors), tensors);
    const micros = Array.from({ length: batch.microOffsets_M1.length - 1 }, (_, m) =>
      Array.from(batch.microSamples.subarray(batch.microOffsets_M1[m], batch.microOffsets_M1[m + 1])),
    );
    expect(micros.length).toBeGreaterThan(1);
    const groups = micros.map((samples) => new Set(samples.map((b) => batch.groups_S?.[b])));
    expect(groups.flatMap((members) => [...members]).length).toBe(new Set(batch.groups_S).size);
  });

  it.each([true, false])(
    'is refused when the responses do not fit into a forward pass (shared prompts: %s)',
    (shared) => {
      const data = { train_files: 'd', max_prompt_length: 10, max_response_length: 10 };
      const issuesWith = (tokens: number) =>
        runIssues(
          recipeWith({
            data,
            rollout: { n: 4 },
            actor: {
              policy_loss: { loss_mode: 'gvpo' },
              use_prefix_grouper: shared,
              ppo_max_token_len_per_gpu: tokens,
            },
          }),
        ).map(({ path }) => path);
      expect(issuesWith(shared ? 49 : 79)).toContain('actor.ppo_max_token_len_per_gpu');
      expect(issuesWith(shared ? 50 : 80)).not.toContain('actor.ppo_max_token_len_per_gpu');
    },
  );

  it('is refused when online_dpo does not compare two responses', () => {
    const keys = { actor: { policy_loss: { loss_mode: 'online_dpo' } }, rollout: { n: 4 } };
    expect(isRefused(keys, 'rollout.n')).toBe(true);
  });
});

describe('rewards', () => {
  it('have a penalty for responses that are nearly too long', async () => {
    const reward = { reward_manager: { name: 'dapo' }, overlong_buffer: { enable: true, len: 4, penalty_factor: 0.5 } };
    for (const metrics of await trained({ reward })) {
      expect(metrics['reward_extra/overlong/mean']).toBeGreaterThan(0);
      const { 'critic/score/mean': shaped, 'reward_extra/score/mean': score } = metrics;
      expect(shaped).toBeCloseTo(Number(score) + Number(metrics['reward_extra/overlong_reward/mean']), 6);
    }
  });

  it('in components are reported each by itself, and a result without one of them is a failed sample', async () => {
    const sometimes: ScoreFunction = ({ solutionStr }) =>
      solutionStr.startsWith('7') ? { score: 1 } : { score: 0, short: 1 / (1 + solutionStr.length) };
    const algorithm = { adv_estimator: 'gdpo', gdpo_reward_keys: ['short', 'score'], gdpo_reward_weights: [2, 1] };
    const recipe = { algorithm, actor: { ppo_mini_batch_size: 4 }, reward: { max_failed_fraction: 1 } };
    const { iterations: made } = await loop.completed(recipe, { score: sometimes });
    for (const { batch } of made)
      expect(batch.metrics).toMatchObject({ 'gdpo/short/std': expect.any(Number), 'gdpo/score/max': 0 });
    const reasons = made.flatMap(({ batch }) => batch.draws.flatMap(({ samples }) => samples));
    expect(reasons).toContainEqual(expect.stringMatching(/^the scorer returned no number "short".*it returned score$/));
  });
});

describe('the loss on positive examples', () => {
  it('imitates responses that scored above 0, beside the loss of the policy', async () => {
    const score: ScoreFunction = ({ solutionStr }) => Number(solutionStr.includes('7') || solutionStr.length > 2);
    const withIt = await trained({ actor: { positive_nll_coef: 0.5 } }, { score });
    for (const metrics of withIt) {
      const { 'actor/loss': loss, 'actor/pg_loss': policy, 'actor/positive_nll_loss': imitation } = metrics;
      expect(imitation).toBeGreaterThan(0);
      expect(loss).toBeCloseTo(Number(policy) + 0.5 * Number(imitation), 6);
    }
    const without = await trained({}, { score });
    expect(without[0]).not.toHaveProperty('actor/positive_nll_loss');
    expect(withIt[0]?.['actor/grad_norm']).not.toBe(without[0]?.['actor/grad_norm']);
  });

  it('is refused where no response has a score', () => {
    const recipe = { kind: 'sft', actor: { positive_nll_coef: 0.1 } };
    expect(isRefused(recipe, 'actor.positive_nll_coef')).toBe(true);
  });
});

describe('the lambdas of vapo', () => {
  it('are those of the recipe', async () => {
    const algorithm = { adv_estimator: 'vapo' };
    const ofPaper = await trained({ algorithm });
    const longer = await trained({ algorithm: { ...algorithm, vapo: { alpha: 1, lam_critic: 0.5 } } });
    for (const name of ['critic/advantages/max', 'critic/returns/mean']) {
      expect(longer[0]?.[name]).toBeTypeOf('number');
      expect(longer[0]?.[name]).not.toBe(ofPaper[0]?.[name]);
    }
  });
});

describe('the optimal token baseline', () => {
  it('reads the probabilities of the policy that sampled, also with one step per batch, and importance weights', async () => {
    const rollout_correction = { rollout_is: 'token' };
    const keys = { adv_estimator: 'optimal_token_baseline', rollout_correction };
    const metrics = await trained({ actor: { ppo_mini_batch_size: 4 }, algorithm: keys });
    expect(metrics[0]?.['critic/advantages/max']).toBeGreaterThan(0);
    expect(metrics[0]?.['critic/advantages/min']).toBeLessThan(0);
    for (const one of metrics) {
      const { 'actor/grad_norm': norm, 'variance_proxy/proxy1_signal_strength': signal } = one;
      expect(signal).toBeCloseTo(Number(norm) ** 2, 8);
      expect(one['variance_proxy/proxy2_total_power']).toBeGreaterThan(0);
    }
  });
});

describe('a rollout correction', () => {
  // One optimiser step per batch: old log-probs are computed for the correction alone.
  const correct = (keys: Tree) => ({ actor: { ppo_mini_batch_size: 4 }, algorithm: { rollout_correction: keys } });
  const tensorsOf = async (keys: Tree) => {
    const { log, iterations: made } = await loop.completed(keys);
    const tensors = made.map(async ({ batch }) =>
      decodeBatch(await getBlob(loop.store, log.runId, batch.tensors), 'batch'),
    );
    return { made, tensors: await Promise.all(tensors) };
  };

  it('weights tokens by trainer against sampler: 1 where both compute the same bits', async () => {
    const { made, tensors } = await tensorsOf(correct({ rollout_is: 'token', rollout_is_batch_normalize: true }));
    for (const [k, { rolloutIsWeights_T, oldLogProbs_T, rolloutLogProbs_T }] of tensors.entries()) {
      expect(oldLogProbs_T).toEqual(rolloutLogProbs_T);
      expect(rolloutIsWeights_T?.every((weight) => weight === 1)).toBe(true);
      expect(made[k]?.batch.metrics).toMatchObject({ 'rollout_corr/rollout_is_mean': expect.closeTo(1, 6) });
    }
  });

  it('takes rejected tokens out of the mask, which no token of equal policies is', async () => {
    const { tensors } = await tensorsOf(correct({ rollout_rs: 'token_k1', rollout_rs_threshold: '0.5_2' }));
    expect(tensors.every(({ mask_T }) => mask_T.every((one) => one === 1))).toBe(true);
    // k1 is 0 everywhere, and this bound lies above it.
    const none = await tensorsOf(correct({ rollout_rs: 'token_k1', rollout_rs_threshold: '1.5_2' }));
    expect(none.tensors.every(({ mask_T }) => mask_T.every((one) => one === 0))).toBe(true);
    for (const { batch, update } of none.made) {
      expect(batch.metrics['rollout_corr/rollout_rs_masked_fraction']).toBeCloseTo(1, 6);
      expect(update.outcome).toBe('skipped');
    }
  });

  it('that is bypassed takes the log-probs of the rollout as old ones', async () => {
    const { made, tensors } = await tensorsOf(correct({ bypass_mode: true }));
    expect(
      tensors.every(({ oldLogProbs_T: old, rolloutLogProbs_T: sampled }) => old?.every((v, t) => v === sampled?.[t])),
    ).toBe(true);
    for (const { batch } of made) {
      expect(batch.oldLogProbs).toBe('stored');
      expect(batch.timings).not.toHaveProperty('timing_s/old_log_prob');
    }
  });

  it('applies to every loss whose tokens have weights', async () => {
    const metrics = await trained({ algorithm: { rollout_correction: bothCorrections } });
    expect(metrics[0]).toHaveProperty('rollout_corr/rollout_rs_seq_mean_k1_masked_fraction', 0);
  });

  it('of the loss bypass_mode is that of the policy that is trained, in every step', async () => {
    const policy_loss = { loss_mode: 'bypass_mode' };
    const keys = { bypass_mode: true, loss_type: 'reinforce', rollout_is: 'sequence' };
    const [first] = await trained({
      actor: { policy_loss, ppo_mini_batch_size: 2 },
      algorithm: { rollout_correction: keys },
    });
    expect(first?.['rollout_corr/rollout_is_mean']).toBeGreaterThan(0);
    expect(first).not.toHaveProperty('training/rollout_probs_diff_mean');
  });
});
