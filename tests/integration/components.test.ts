/** A run whose state has two components: the policy, and a value model that learns the returns. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { verifyCheckpoints } from '../../api/checkpoints/verify.ts';
import type { Tree } from '../../core/recipe/index.ts';
import type { ArmedFault } from '../../infra/faults/index.ts';
import { faultsVariable } from '../../infra/faults/index.ts';
import { Injector } from '../inject.ts';
import { essences as essencesOf, killedRun } from '../killed-run.ts';
import { LoopUnderTest, onePool, separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const faults = join(loop.home, 'faults');
let injector: Injector;
let undisturbed: StartedRun;
beforeAll(async () => {
  injector = new Injector(loop.home, faults);
  process.env[faultsVariable] = faults;
  await loop.up(onePool);
  undisturbed = await loop.completed(twoModels);
});
afterEach(() => injector.disarmAll());
afterAll(async () => {
  delete process.env[faultsVariable];
  injector.close();
  await loop.remove(); // also verifies every ledger, with all tensors
});

const iterations = 5;
const twoModels: Tree = {
  actor: { ppo_mini_batch_size: 2 },
  critic: { enable: true, optim: { lr: 0.01, weight_decay: 0 } },
  trainer: { total_training_steps: iterations, save_freq: 2 },
};

const essences = (run: StartedRun) => essencesOf(loop, run);

/** PPO: the advantages are computed from the critic's values. */
const ppo: Tree = { ...twoModels, algorithm: { adv_estimator: 'gae', lam: 0.95 } };

describe('a run with an actor and a critic (seed 42)', () => {
  it('trains both by their own optimisers, and the critic learns the returns', async () => {
    const made = await loop.iterations(undisturbed);
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
    const actor = async (run: StartedRun) =>
      (await loop.iterations(run)).map(({ update }) => update.components['actor']);
    expect(await actor(alone)).toEqual(await actor(undisturbed));
    const [{ update } = { update: undefined }] = await loop.iterations(alone);
    // The state of a run with one component is that component's.
    expect(update?.stateDigest).toBe(update?.components['actor']?.stateDigest);
  });

  it('trains only the critic until trainer.critic_warmup, and then both, wherever the roles are', async () => {
    const warmup: Tree = {
      ...ppo,
      actor: { ppo_mini_batch_size: 2, optim: { lr_scheduler_type: 'cosine' } },
      trainer: { total_training_steps: 4, save_freq: 2, critic_warmup: 3 },
    };
    const run = await loop.completed(warmup);
    const made = await loop.iterations(run);
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
    const id = 'warmup';
    injector.arm({ id, point: 'write.step', facts: { iteration: 2, step: 0 }, action: 'stand' });
    const killed = await loop.start(warmup);
    const { identity } = await injector.stands(id, AbortSignal.timeout(60_000));
    injector.disarm(id);
    if (identity === undefined) throw new Error('the trainer is gone');
    await injector.kill([{ name: 'the trainer', identity }]);
    await loop.reaches(killed, 'completed');
    expect(await essences(killed)).toEqual(await essences(run));
    await loop.up(separatePools);
    expect(await essences(await loop.completed(warmup))).toEqual(await essences(run));
    await loop.up(onePool);
  });

  it('saves both in one checkpoint, every shard of which is intact', async () => {
    const [newest] = await undisturbed.log.checkpoints();
    expect(Object.keys(newest?.record.components ?? {})).toEqual(['actor', 'critic']);
    const verdicts = await verifyCheckpoints(undisturbed.log, undefined, () => {});
    expect(verdicts.map(({ ok, problem }) => problem ?? ok)).toEqual([true, true, true]);
  });

  it.each<readonly [string, Pick<ArmedFault, 'point' | 'facts'>]>([
    ['between the steps of iteration 4', { point: 'write.step', facts: { iteration: 4, step: 0 } }],
    ['in the middle of its checkpoint', { point: 'checkpoint.shard', facts: { iteration: 4 } }],
  ])('ends in the same bits when its trainer is killed %s', async (_, at) => {
    const run = await killedRun(loop, injector, twoModels, at);
    expect(await essences(run)).toEqual(await essences(undisturbed));
  });

  it('ends in the same bits when roles are in processes of their own, and the weights travel', async () => {
    await loop.up(separatePools);
    expect(await essences(await loop.completed(twoModels))).toEqual(await essences(undisturbed));
  });

  it('with gae ends in the same bits when its trainer is killed, and when roles are apart', async () => {
    await loop.up(onePool);
    const alone = await loop.completed(ppo);
    const [first] = await loop.iterations(alone);
    expect(first?.batch.metrics['critic/values/mean']).toBe(0); // a new value head is 0
    const run = await killedRun(loop, injector, ppo, { point: 'write.step', facts: { iteration: 4, step: 0 } });
    expect(await essences(run)).toEqual(await essences(alone));
    await loop.up(separatePools);
    expect(await essences(await loop.completed(ppo))).toEqual(await essences(alone));
  });
});
