/** PRIME in runs: an implicit reward model as a component, which learns the scores and rewards every token. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { exportPolicy } from '../../api/checkpoints/export.ts';
import { metricInfo, reproducibleMetrics } from '../../core/metrics.ts';
import type { Tree } from '../../core/recipe/index.ts';
import type { ArmedFault } from '../../infra/faults/index.ts';
import { faultsVariable } from '../../infra/faults/index.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest, onePool, separatePools } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const faults = join(loop.home, 'faults');
let injector: Injector;
let undisturbed: StartedRun;
beforeAll(async () => {
  injector = new Injector(loop.home, faults);
  process.env[faultsVariable] = faults;
  await loop.up(onePool);
  undisturbed = await loop.completed(prime());
});
afterEach(() => injector.disarmAll());
afterAll(async () => {
  delete process.env[faultsVariable];
  injector.close();
  await loop.remove(); // also verifies every ledger, with all tensors
});

const iterations = 5;
const prime = (settings: Tree = {}, more: Tree = {}): Tree => ({
  algorithm: { adv_estimator: 'prime' },
  actor: { ppo_mini_batch_size: 2 },
  reward: { prime: { optim: { lr: 0.005, weight_decay: 0 }, ...settings } },
  trainer: { total_training_steps: iterations, save_freq: 2 },
  ...more,
});

const essence = ({ batch, update }: Iteration) => ({
  tensors: batch.tensors,
  trained: batch.components,
  state: update.stateDigest,
  components: update.components,
  counters: update.after,
  metrics: reproducibleMetrics({ ...batch.metrics, ...update.metrics } as Record<string, number>),
});
const essences = async (run: StartedRun) => (await loop.iterations(run)).map(essence);
const metricsOf = async (run: StartedRun) => (await essences(run)).map(({ metrics }) => metrics);

describe('a run with an implicit reward model (seed 42)', () => {
  it('trains it by its own optimiser, before the policy reads its rewards', async () => {
    const made = await loop.iterations(undisturbed);
    expect(made).toHaveLength(iterations);
    const states = (name: string) => made.map(({ update }) => update.components[name]?.stateDigest);
    for (const name of ['actor', 'rewardModel']) expect(new Set(states(name)).size).toBe(iterations);
    for (const { batch, update } of made) {
      expect(batch.components['rewardModel']).toMatchObject({ learningRates: [0.005, 0.005], loss: { kind: 'prime' } });
      expect(update.components['rewardModel']?.steps).toHaveLength(2);
      const metrics = { ...batch.metrics, ...update.metrics };
      expect(Object.keys(metrics).filter((name) => metricInfo(name) === undefined)).toEqual([]);
      expect(Object.entries(metrics).filter(([, value]) => !Number.isFinite(value))).toEqual([]);
      // The batch has no advantages yet: the update makes them.
      expect(batch.metrics).not.toHaveProperty(['critic/advantages/max']);
      expect(update.metrics['critic/advantages/max']).toBeGreaterThan(0);
    }
  });

  it('exports its policy, not the reward model beside it', async () => {
    const folder = join(loop.home, 'exported');
    await exportPolicy(undisturbed.log, { folder }, { home: loop.home });
    const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Record<string, unknown>;
    expect(config['architectures']).toEqual(['LlamaForCausalLM']);
  });

  it('orders the responses to a prompt as their scores do, after it has learned from them', async () => {
    const metrics = await metricsOf(undisturbed);
    expect(metrics.at(-1)?.['reward_model/dpo_acc']).toBeGreaterThan(0.6);
  });

  it.each(['ce', 'none', 'bon_rm', 'bon_acc'])('learns with the loss %s, after its rewards are used', async (loss) => {
    const run = await loop.completed(
      prime({ update: 'after', loss_type: loss }, { trainer: { total_training_steps: 2 } }),
    );
    const metrics = await metricsOf(run);
    for (const one of metrics) {
      expect(Object.entries(one).filter(([, value]) => !Number.isFinite(value))).toEqual([]);
      expect(one).toMatchObject({ 'training/skipped_steps': 0, 'critic/advantages/max': expect.any(Number) });
    }
    // A reward model that has not learned yet is its reference.
    expect(metrics[0]?.['reward_model/raw_reward']).toBe(0);
    expect(metrics[1]?.['reward_model/raw_reward']).not.toBe(0);
  });

  it.each<readonly [string, Pick<ArmedFault, 'point' | 'facts'>]>([
    ['between the steps of iteration 4', { point: 'write.step', facts: { iteration: 4, step: 0 } }],
    ['after iteration 4, before its record', { point: 'write.sealed', facts: { iteration: 4 } }],
    ['in the middle of its checkpoint', { point: 'checkpoint.shard', facts: { iteration: 4 } }],
  ])('ends in the same bits when its trainer is killed %s', async (_, at) => {
    const id = at.point; // of one case
    injector.arm({ id, ...at, action: 'stand' });
    const run = await loop.start(prime());
    const { identity } = await injector.stands(id, AbortSignal.timeout(60_000));
    injector.disarm(id);
    if (identity === undefined) throw new Error('the trainer is gone');
    await injector.kill([{ name: 'the trainer', identity }]);
    await loop.reaches(run, 'completed');
    expect(await essences(run)).toEqual(await essences(undisturbed));
  });

  it('pauses at a score that is no accuracy', async () => {
    const path = loop.scorer('large', 'return solutionStr.length;');
    const run = await loop.start(
      prime(
        {},
        { reward: { custom_reward_function: { path, deterministic: true } }, data: { max_response_length: 4 } },
      ),
    );
    const { reason } = await loop.reaches(run, 'paused');
    expect(reason).toMatchObject({ code: 'AccuracyOutOfRange' });
  });

  it('ends in the same bits when roles are in processes of their own', async () => {
    await loop.up(separatePools);
    expect(await essences(await loop.completed(prime()))).toEqual(await essences(undisturbed));
  });
});
