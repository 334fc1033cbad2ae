// @module-tag long
/** Trainers on machines that have joined: any may be lost, and the run ends in the bits of one that kept all. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { packageRoot } from '../../infra/home.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import { freePorts } from '../../infra/ports.ts';
import { poll } from '../../infra/poll.ts';
import { ensureStack } from '../../infra/stack/index.ts';
import { needRecord } from '../../log/objects/records.ts';
import { runWords } from '../cli.ts';
import { startMachine } from '../joined-machine.ts';
import type { JoinedMachine } from '../joined-machine.ts';
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
const machines: JoinedMachine[] = [];
let homes = 0;

beforeAll(async () => {
  const [port] = (await freePorts(1)) as [number];
  const sample = [{ name: 'sample', count: 1, roles: ['rollout' as const, 'reward' as const], threads: 1 }];
  await ensureStack({ home: loop.home, workers: sample, listen: { host: '127.0.0.1', port } });
  await loop.up(sample);
});
afterEach(async () => {
  for (const machine of machines.splice(0)) await machine.kill();
});
afterAll(() => loop.remove());

async function trainer(): Promise<JoinedMachine> {
  const words = ['fleet', 'token', '--pool', 'gpus', '--roles', 'trainer', '--json'];
  const file = (await runWords(loop.home, words)).json<JoinFile>();
  const home = join(loop.home, `machine-${++homes}`);
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(join(home, 'join.json'), JSON.stringify(file));
  const program = join(packageRoot(), 'cli/bin.mjs');
  const machine = startMachine({
    home,
    words: [program, 'worker', '--join', join(home, 'join.json'), '--threads', '1'],
  });
  machines.push(machine);
  return machine;
}

const instanceOf = ({ said }: JoinedMachine) => /joined \S+ as (gpus-[0-9a-f]{12})/.exec(said())?.[1];

/** The machine that trains the run now. */
const leader = (run: StartedRun): Promise<string> =>
  loop.until(run, 'a trainer', async () => {
    const all = await listWorkers(loop.nc);
    return all.find(({ lease, roles }) => lease === run.runId && roles.includes('trainer'))?.instance;
  });

/** The machines that computed its updates, in their order. */
async function updatersOf({ runId }: StartedRun): Promise<ReadonlySet<string>> {
  const writers = new Set<string>();
  for (const name of await loop.store.children(keys.results(runId))) {
    const { record } = await needRecord(loop.store, keys.results(runId) + name, resultRecord);
    if (record.stage === 'update') writers.add(record.writer.process);
  }
  return writers;
}

it('a run waits for one, and is trained there', async () => {
  const run = await loop.start(recipe);
  const machine = await trainer();
  await loop.reaches(run, 'completed');
  expect(await updatersOf(run)).toEqual(new Set([`${instanceOf(machine)}/w1`]));
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
  expect((await updatersOf(run)).size).toBe(3);
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
  expect(await updatersOf(run)).toEqual(new Set([`${instanceOf(first)}/w1`, `${instanceOf(second)}/w1`]));
});
