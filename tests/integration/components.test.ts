/** A run whose state has two components: the policy, and a value model that learns the returns. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyCheckpoints } from '../../api/checkpoints/verify.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

const loop = new InProcessLoop(sevens);
let undisturbed: RunInProcess;
beforeAll(async () => {
  await loop.up();
  undisturbed = await loop.completed(twoModels);
});
afterAll(() => loop.remove());

const iterations = 5;
const twoModels: Tree = {
  actor: { ppo_mini_batch_size: 2 },
  critic: { enable: true, optim: { lr: 0.01, weight_decay: 0 } },
  trainer: { total_training_steps: iterations, save_freq: 2 },
};

/** PPO: the advantages are computed from the critic's values. */
const ppo: Tree = { ...twoModels, algorithm: { adv_estimator: 'gae', lam: 0.95 } };

describe('a run with an actor and a critic (seed 42)', () => {
  it('trains both by their own optimisers, and the critic learns the returns', () => {
    const made = undisturbed.iterations;
    expect(made).toHaveLength(iterations);
    const states = (name: string) => made.map(({ update }) => update.components[name]?.stateDigest);
    for (const name of ['actor', 'critic']) expect(new Set(states(name)).size).toBe(iterations);
    for (const [k, { batch, update }] of made.entries()) {
      expect(batch.components['critic']).toMatchObject({ learningRates: [0.01, 0.01], loss: { kind: 'value' } });
      expect(batch.components['actor']).toMatchObject({ learningRates: [0.003, 0.003], loss: { kind: 'policy' } });
      expect(update.components['critic']?.steps).toHaveLength(2);
      expect(update.after.optimizerSteps).toEqual({ actor: 2 * (k + 1), critic: 2 * (k + 1) });
    }
    const losses = made.map(({ update }) => Number(update.metrics['critic/vf_loss']));
    expect(losses.every((loss) => Number.isFinite(loss) && loss > 0)).toBe(true);
  });

  it('gives the same policy as a run without the critic, which shares nothing with it', async () => {
    const alone = await loop.completed({ ...twoModels, critic: { enable: null } });
    const actor = ({ iterations: made }: RunInProcess) => made.map(({ update }) => update.components['actor']);
    expect(actor(alone)).toEqual(actor(undisturbed));
    const [{ update } = { update: undefined }] = alone.iterations;
    // The state of a run with one component is that component's.
    expect(update?.stateDigest).toBe(update?.components['actor']?.stateDigest);
  });

  it('trains only the critic until trainer.critic_warmup, and then both', async () => {
    const warmup: Tree = {
      ...ppo,
      actor: { ppo_mini_batch_size: 2, optim: { lr_scheduler_type: 'cosine' } },
      trainer: { total_training_steps: 4, save_freq: 2, critic_warmup: 3 },
    };
    const { iterations: made } = await loop.completed(warmup);
    const trained = (name: string) => made.map(({ update }) => update.components[name]?.steps.length);
    expect(trained('actor')).toEqual([0, 0, 2, 2]);
    expect(trained('critic')).toEqual([2, 2, 2, 2]);
    expect(made.map(({ update }) => update.after.optimizerSteps)).toEqual([
      { actor: 0, critic: 2 },
      { actor: 0, critic: 4 },
      { actor: 2, critic: 6 },
      { actor: 4, critic: 8 },
    ]);
    // The policy's schedule begins with its first step.
    expect(made[2]?.batch.components['actor']?.learningRates[0]).toBeCloseTo(0.003, 4);
    const weights = made.map(({ update }) => update.components['actor']?.weightsDigest);
    expect(weights[0]).toBe(weights[1]);
    expect(new Set(weights).size).toBe(3);
    expect(made.map(({ update }) => 'actor/grad_norm' in update.metrics)).toEqual([false, false, true, true]);
    expect(made.every(({ update }) => update.outcome === 'applied')).toBe(true);
  });

  it('saves both in one checkpoint, every shard of which is intact', async () => {
    const [newest] = await undisturbed.log.checkpoints.all();
    expect(Object.keys(newest?.record.components ?? {})).toEqual(['actor', 'critic']);
    const verdicts = await verifyCheckpoints(undisturbed.log, undefined, () => {});
    expect(verdicts.map(({ ok, problem }) => problem ?? ok)).toEqual([true, true, true]);
  });

  it('with gae reads values of 0 at first: a new value head is 0', async () => {
    const [first] = (await loop.completed(ppo)).iterations;
    expect(first?.batch.metrics['critic/values/mean']).toBe(0);
  });
});
