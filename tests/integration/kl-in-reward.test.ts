/** Runs whose rewards contain the KL from the reference policy, with a coefficient that changes from batch to batch. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

const loop = new InProcessLoop(sevens);
let undisturbed: RunInProcess;
beforeAll(async () => {
  await loop.up();
  undisturbed = await loop.completed(adaptive);
});
afterAll(() => loop.remove());

const iterations = 5;
const samples = 16;
/** One optimiser step per batch: old log-probs are computed for the penalty alone. */
const adaptive: Tree = {
  actor: { ppo_mini_batch_size: 4 },
  algorithm: { use_kl_in_reward: true, kl_ctrl: { type: 'adaptive', kl_coef: 0.5, horizon: 50, target_kl: 0.01 } },
  trainer: { total_training_steps: iterations, save_freq: 2 },
};

describe('a run with the KL in its rewards (seed 42)', () => {
  it('moves the adaptive coefficient by the KL of each batch, and records it', () => {
    const made = undisturbed.iterations;
    expect(made).toHaveLength(iterations);
    let coefficient = 0.5;
    for (const { batch, update } of made) {
      const { 'actor/reward_kl_penalty': kl, 'actor/reward_kl_penalty_coeff': used } = batch.metrics;
      expect(used).toBe(coefficient);
      const error = Math.min(Math.max(Number(kl) / 0.01 - 1, -0.2), 0.2);
      coefficient *= 1 + (error * samples) / 50;
      expect(update.after.controllers['klCoef']).toBeCloseTo(coefficient, 12);
      coefficient = Number(update.after.controllers['klCoef']);
      expect(batch.oldLogProbs).toBe('stored');
    }
    // The first batch is sampled from the reference policy itself.
    expect(Math.abs(Number(made[0]?.batch.metrics['actor/reward_kl_penalty']))).toBeLessThan(1e-6);
    const last = made.at(-1)?.batch.metrics ?? {};
    expect(last['critic/rewards/mean']).not.toBe(last['critic/score/mean']);
  });

  it('keeps the coefficient of the recipe with a fixed controller, and the reward is lower by the penalty', async () => {
    const fixed = await loop.completed({
      ...adaptive,
      algorithm: { use_kl_in_reward: true, kl_ctrl: { kl_coef: 0.2 }, kl_penalty: 'low_var_kl' },
    });
    for (const { batch, update } of fixed.iterations) {
      expect(batch.metrics['actor/reward_kl_penalty_coeff']).toBe(0.2);
      expect(update.after.controllers).toEqual({ klCoef: 0.2 });
      const { 'critic/rewards/mean': reward, 'critic/score/mean': score } = batch.metrics;
      expect(Number(reward)).toBeLessThanOrEqual(Number(score));
    }
  });

  it('goes on with the coefficient of its origin when it is a fork', async () => {
    const fork = await loop.forkedAfter(undisturbed, 3);
    const states = (run: RunInProcess) =>
      run.iterations.map(({ update }) => [update.stateDigest, update.after.controllers]);
    expect(states(fork)).toEqual(states(undisturbed).slice(3));
  });
});
