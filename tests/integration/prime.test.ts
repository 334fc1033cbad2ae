/** PRIME in runs: an implicit reward model as a component, which learns the scores and rewards every token. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exportPolicy } from '../../api/checkpoints/export.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { soundMetrics } from '../algorithm-recipes.ts';
import { metricsOf } from '../essences.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

const loop = new InProcessLoop(sevens);
let undisturbed: RunInProcess;
beforeAll(async () => {
  await loop.up();
  undisturbed = await loop.completed(prime());
});
afterAll(() => loop.remove());

const iterations = 5;
const prime = (settings: Tree = {}, more: Tree = {}): Tree => ({
  algorithm: { adv_estimator: 'prime' },
  actor: { ppo_mini_batch_size: 2 },
  reward: { prime: { optim: { lr: 0.005, weight_decay: 0 }, ...settings } },
  trainer: { total_training_steps: iterations, save_freq: 2 },
  ...more,
});

describe('a run with an implicit reward model (seed 42)', () => {
  it('trains it by its own optimiser, before the policy reads its rewards', () => {
    const made = undisturbed.iterations;
    soundMetrics(made);
    expect(made).toHaveLength(iterations);
    const states = (name: string) => made.map(({ update }) => update.components[name]?.stateDigest);
    for (const name of ['actor', 'rewardModel']) expect(new Set(states(name)).size).toBe(iterations);
    for (const { batch, update } of made) {
      expect(batch.components['rewardModel']).toMatchObject({ learningRates: [0.005, 0.005], loss: { kind: 'prime' } });
      expect(update.components['rewardModel']?.steps).toHaveLength(2);
      // The batch has no advantages yet: the update makes them.
      expect(batch.metrics).not.toHaveProperty(['critic/advantages/max']);
      expect(update.metrics['critic/advantages/max']).toBeGreaterThan(0);
    }
  });

  it('exports its policy, not the reward model beside it', async () => {
    const folder = join(loop.folder, 'exported');
    await exportPolicy(undisturbed.log, { folder }, { home: loop.folder });
    const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Record<string, unknown>;
    expect(config['architectures']).toEqual(['LlamaForCausalLM']);
  });

  it('orders the responses to a prompt as their scores do, after it has learned from them', () => {
    const metrics = undisturbed.iterations.map(metricsOf);
    expect(metrics.at(-1)?.['reward_model/dpo_acc']).toBeGreaterThan(0.6);
  });

  it.each(['ce', 'none', 'bon_rm', 'bon_acc'])('learns with the loss %s, after its rewards are used', async (loss) => {
    const recipe = prime({ update: 'after', loss_type: loss }, { trainer: { total_training_steps: 2 } });
    const metrics = soundMetrics((await loop.completed(recipe)).iterations);
    for (const one of metrics) expect(one).toMatchObject({ 'critic/advantages/max': expect.any(Number) });
    // A reward model that has not learned yet is its reference.
    expect(metrics[0]?.['reward_model/raw_reward']).toBe(0);
    expect(metrics[1]?.['reward_model/raw_reward']).not.toBe(0);
  });

  it('pauses at a score that is no accuracy', async () => {
    const run = loop.completed(prime({}, { data: { max_response_length: 4 } }), {
      score: ({ solutionStr }) => solutionStr.length,
    });
    await expect(run).rejects.toMatchObject({ kind: 'pause', code: 'AccuracyOutOfRange' });
  });
});
