// @module-tag long
/** Trainers on machines that have joined: any may be lost, and the run ends in the bits of one that kept all. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import { poll } from '../../infra/poll.ts';
import type { JoinedMachine } from '../joined-machine.ts';
import { instanceOf, JoinedMachines, updatersOf } from '../joined-machines.ts';
import { essences } from '../killed-run.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';

const loop = new LoopUnderTest();
const recipe = {
  trainer: { total_training_steps: 8, save_freq: 3 },
  fleet: { pools: { sample: { roles: ['rollout', 'reward'] } } },
};
const bounded = { everyMs: 50, timeoutMs: patienceMs };
const machines = new JoinedMachines(loop);

beforeAll(() => machines.up([{ name: 'sample', count: 1, roles: ['rollout', 'reward'], threads: 1 }]));
afterEach(() => machines.remove());
afterAll(() => loop.remove());

const trainer = () => machines.join('gpus', { roles: ['trainer'] });

/** The machine that trains the run now. */
const leader = (run: StartedRun): Promise<string> =>
  loop.until(run, 'a trainer', async () => {
    const all = await listWorkers(loop.nc);
    return all.find(({ lease, roles }) => lease === run.runId && roles.includes('trainer'))?.instance;
  });

it('a run waits for one, and is trained there', async () => {
  const run = await loop.start(recipe);
  const machine = await trainer();
  await loop.reaches(run, 'completed');
  expect(await updatersOf(loop, run)).toEqual(new Set([`${instanceOf(machine)}/w1`]));
});

it('the one that leads is killed in the middle, then the next one: a third ends the run in the same bits', async () => {
  const alone = await trainer();
  const undisturbed = await loop.completed(recipe);
  await alone.kill();
  const first = await trainer();
  const run = await loop.start(recipe);
  await loop.passes(run, 2);
  const left: JoinedMachine[] = [first, await trainer()];
  for (const after of [4, 6]) {
    const leads = await leader(run);
    const [lost] = left.splice(
      left.findIndex((one) => instanceOf(one) === leads),
      1,
    );
    expect(lost, leads).toBeDefined();
    left.push(await trainer());
    await lost?.kill();
    await loop.passes(run, after);
  }
  await loop.reaches(run, 'completed');
  expect((await updatersOf(loop, run)).size).toBe(3);
  expect(await essences(loop, run)).toEqual(await essences(loop, undisturbed));
});

it('one that is told to leave saves the state that it holds', async () => {
  const first = await trainer();
  const run = await loop.start({ ...recipe, trainer: { total_training_steps: 8, save_freq: -1 } });
  await loop.passes(run, 3);
  const second = await trainer();
  expect(await poll(() => instanceOf(second) !== undefined, bounded), second.said()).toBe(true);
  first.process.kill('SIGTERM');
  expect(await first.ended, first.said()).toBe(0);
  await loop.reaches(run, 'completed');
  const saved = await loop.store.children(keys.checkpoints(run.runId));
  expect(saved.some((name) => Number.parseInt(name, 10) > 0 && Number.parseInt(name, 10) < 8)).toBe(true);
  expect(await updatersOf(loop, run)).toEqual(new Set([`${instanceOf(first)}/w1`, `${instanceOf(second)}/w1`]));
});
