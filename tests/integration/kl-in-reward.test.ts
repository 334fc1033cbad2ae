/** Runs whose rewards contain the KL from the reference policy, with a coefficient that changes from batch to batch. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { reproducibleMetrics } from '../../core/metrics.ts';
import type { Tree } from '../../core/recipe/index.ts';
import type { ArmedFault } from '../../infra/faults/index.ts';
import { faultsVariable } from '../../infra/faults/index.ts';
import { RunLog } from '../../infra/store/run-log.ts';
import { runWords } from '../cli.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest, onePool } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const faults = join(loop.home, 'faults');
let injector: Injector;
let undisturbed: StartedRun;
beforeAll(async () => {
  injector = new Injector(loop.home, faults);
  process.env[faultsVariable] = faults;
  await loop.up(onePool);
  undisturbed = await loop.completed(adaptive);
});
afterEach(() => injector.disarmAll());
afterAll(async () => {
  delete process.env[faultsVariable];
  injector.close();
  await loop.remove(); // also verifies every ledger, with all tensors
});

const iterations = 5;
const samples = 16;
/** One optimiser step per batch: old log-probs are computed for the penalty alone. */
const adaptive: Tree = {
  algorithm: { use_kl_in_reward: true, kl_ctrl: { type: 'adaptive', kl_coef: 0.5, horizon: 50, target_kl: 0.01 } },
  trainer: { total_training_steps: iterations, save_freq: 2 },
};

/** The values on which two equal runs must agree. */
const essence = ({ batch, update }: Iteration) => ({
  tensors: batch.tensors,
  state: update.stateDigest,
  before: batch.before,
  after: update.after,
  metrics: reproducibleMetrics({ ...batch.metrics, ...update.metrics } as Record<string, number>),
});
const essences = async (run: StartedRun) => (await loop.iterations(run)).map(essence);

describe('a run with the KL in its rewards (seed 42)', () => {
  it('moves the adaptive coefficient by the KL of each batch, and records it', async () => {
    const made = await loop.iterations(undisturbed);
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
    for (const { batch, update } of await loop.iterations(fixed)) {
      expect(batch.metrics['actor/reward_kl_penalty_coeff']).toBe(0.2);
      expect(update.after.controllers).toEqual({ klCoef: 0.2 });
      const { 'critic/rewards/mean': reward, 'critic/score/mean': score } = batch.metrics;
      expect(Number(reward)).toBeLessThanOrEqual(Number(score));
    }
  });

  it.each<readonly [string, Pick<ArmedFault, 'point' | 'facts'>]>([
    [
      'while it makes the batch of iteration 4',
      { point: 'result.before', facts: { stage: 'advantage', iteration: 4 } },
    ],
    ['between batch and update of iteration 3', { point: 'write.dirty', facts: { iteration: 3 } }],
    ['after iteration 4, before its record', { point: 'write.sealed', facts: { iteration: 4 } }],
  ])('ends in the same bits when its trainer is killed %s', async (_, at) => {
    const id = at.point; // of one case
    injector.arm({ id, ...at, action: 'stand' });
    const run = await loop.start(adaptive);
    const { identity } = await injector.stands(id, AbortSignal.timeout(60_000));
    injector.disarm(id);
    if (identity === undefined) throw new Error('the trainer is gone');
    await injector.kill([{ name: 'the trainer', identity }]);
    await loop.reaches(run, 'completed');
    expect(await essences(run)).toEqual(await essences(undisturbed));
  });

  it('goes on with the coefficient of its origin when it is a fork', async () => {
    const words = ['fork', undisturbed.runId, '--from', '3', '--wait', '--json'];
    const { runId } = (await runWords(loop.home, words)).json<{ runId: string }>();
    const fork = { runId, log: new RunLog(loop.store, runId) } as StartedRun;
    loop.runs.add(fork);
    const states = async (run: StartedRun) =>
      (await loop.iterations(run)).map(({ update }) => [update.stateDigest, update.after.controllers]);
    expect(await states(fork)).toEqual((await states(undisturbed)).slice(3));
  });
});
