// @module-tag engines
/** Trainers and samplers of torch on machines that have joined: one is killed, and another one ends the run. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { JoinedMachines, updatersOf } from '../joined-machines.ts';
import { essences } from '../killed-run.ts';
import { LoopUnderTest } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const machines = new JoinedMachines(loop);
beforeAll(() => machines.up([{ name: 'local', count: 1, roles: ['reward'], threads: 1 }]));
afterEach(() => machines.remove());
afterAll(() => loop.remove());

const trainer = () => machines.join('gpus', { roles: ['trainer'], engines: ['torch'] });

it('a run of SFT in two ranks is trained there, and has the same bits when its machine is killed', async () => {
  const recipe = {
    kind: 'sft',
    trainer: { engine: 'torch', fsdp_size: 2, total_training_steps: 6, save_freq: 2 },
    deterministic: true,
  };
  const first = await trainer();
  await machines.areThere('gpus');
  const undisturbed = await loop.completed(recipe);
  expect(first.said()).toMatch(/torch for cpu \(.+\) is here/);
  const run = await loop.start(recipe);
  await loop.passes(run, 3);
  await trainer();
  await first.kill();
  await loop.reaches(run, 'completed');
  expect((await updatersOf(loop, run)).size).toBe(2);
  expect(await essences(loop, run)).toEqual(await essences(loop, undisturbed));
});

it('a run is sampled by hf on one machine with the weights that torch trains on another', async () => {
  await trainer();
  await machines.join('samplers', { roles: ['rollout'], engines: ['torch'] });
  await machines.areThere('gpus', 'samplers');
  const trains = { engine: 'torch', total_training_steps: 3 };
  const run = await loop.completed({ trainer: trains, rollout: { name: 'hf' }, deterministic: 'replay' });
  expect((await run.log.head())?.position).toBe(3);
});
