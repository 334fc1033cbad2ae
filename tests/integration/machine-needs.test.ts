// @module-tag long
/** Jobs with needs go to machines that meet them, whichever others wait for jobs beside them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { MachineStatus } from '../../api/runs/machine-status.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { packageRoot } from '../../infra/home.ts';
import { freePorts } from '../../infra/ports.ts';
import { poll } from '../../infra/poll.ts';
import { ensureStack } from '../../infra/stack/index.ts';
import { needRecord } from '../../log/objects/records.ts';
import { runWords } from '../cli.ts';
import { startMachine } from '../joined-machine.ts';
import type { JoinedMachine } from '../joined-machine.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';

const loop = new LoopUnderTest();
const bounded = { everyMs: 50, timeoutMs: patienceMs };
const short = { trainer: { total_training_steps: 3 } };
const machines: JoinedMachine[] = [];
let homes = 0;

beforeAll(async () => {
  const [port] = (await freePorts(1)) as [number];
  const pools = [{ name: 'local', count: 1, roles: ['trainer' as const], threads: 1 }];
  await ensureStack({ home: loop.home, workers: pools, listen: { host: '127.0.0.1', port } });
  await loop.up(pools);
});
afterEach(async () => {
  for (const machine of machines.splice(0)) await machine.kill();
});
afterAll(() => loop.remove());

/** A machine of the pool, that says it has these GPUs. */
async function joins(pool: string, gpus: readonly object[] = [], ...given: string[]): Promise<JoinedMachine> {
  const file = (await runWords(loop.home, ['fleet', 'token', '--pool', pool, ...given, '--json'])).json<JoinFile>();
  const home = join(loop.home, `machine-${++homes}`);
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(join(home, 'join.json'), JSON.stringify(file));
  const words = [join(packageRoot(), 'cli/bin.mjs'), 'worker', '--join', join(home, 'join.json'), '--threads', '1'];
  const env = gpus.length === 0 ? {} : { PETREL_PLAYED_GPUS: JSON.stringify(gpus) };
  const machine = startMachine({ home, words, env });
  machines.push(machine);
  return machine;
}

const isThere = async (pool: string): Promise<boolean> =>
  (await runWords(loop.home, ['status', '--json']))
    .json<MachineStatus>()
    .workers.some(({ instance, state }) => instance.startsWith(`${pool}-`) && (state === 'ready' || state === 'busy'));

async function areThere(...pools: string[]): Promise<void> {
  for (const pool of pools) expect(await poll(() => isThere(pool), bounded), pool).toBe(true);
}

/** The pools of the machines that did the run's jobs, by their stage. */
async function poolsOf({ runId }: StartedRun): Promise<Record<string, string[]>> {
  const found: Record<string, Set<string>> = {};
  for (const name of await loop.store.children(keys.results(runId))) {
    const { record } = await needRecord(loop.store, keys.results(runId) + name, resultRecord);
    const pool = record.writer.process.replace(/-.*/, '');
    (found[record.stage] ??= new Set()).add(pool);
  }
  return Object.fromEntries(['rollout', 'reward', 'update'].map((stage) => [stage, [...(found[stage] ?? [])]]));
}

it('in one pool are for its machines, and those of another run beside them for all', async () => {
  await joins('left');
  await joins('right');
  await areThere('left', 'right');
  const needs = { rollout: { pools: ['right'] }, reward: { pools: ['left', 'nowhere'] } };
  const [placed, anywhere] = [await loop.start({ ...short, fleet: { needs } }), await loop.start(short)];
  await loop.reaches(placed, 'completed');
  await loop.reaches(anywhere, 'completed');
  expect(await poolsOf(placed)).toEqual({ rollout: ['right'], reward: ['left'], update: ['local'] });
});

it('of the trainer go to another machine, though this one has a trainer', async () => {
  await joins('far', [], '--roles', 'trainer,rollout,reward');
  await areThere('far');
  const run = await loop.completed({ ...short, fleet: { needs: { trainer: { pools: ['far'] } } } });
  expect(await poolsOf(run)).toEqual({ rollout: ['far'], reward: ['far'], update: ['far'] });
});

it('of GPUs wait for a machine that has them, and say what they wait for', async () => {
  await joins('plain');
  await joins('small', [{ name: 'NVIDIA A10G', gib: 22.5 }]);
  await areThere('plain', 'small');
  const gpu = { count: 2, memory_gib: 80, model: 'H100' };
  const run = await loop.create({ ...short, fleet: { needs: { rollout: { gpu } } } });
  const notes = loop.notes(run);
  await loop.drive(run);
  const why = /no free worker with the role rollout .*with 2 GPUs H100 of 80 GiB is available/;
  expect(await poll(() => notes.some(({ queued }) => why.test(queued ?? '')), bounded)).toBe(true);
  const h100 = { name: 'NVIDIA H100 80GB HBM3', gib: 79.6 };
  await joins('one', [h100]);
  await joins('large', [h100, h100]);
  await loop.reaches(run, 'completed');
  expect((await poolsOf(run))['rollout']).toEqual(['large']);
});

it('that no machine can meet are refused when the run starts, with what to type', async () => {
  const ofPool = loop.recipeFile('of-pool', { ...short, fleet: { needs: { rollout: { pools: ['moon'] } } } });
  await expect(runWords(loop.home, ['run', ofPool])).rejects.toMatchObject({
    message: expect.stringContaining('no machine with the role rollout in the pool moon: neither'),
    hint: expect.stringContaining('petrel fleet token --pool moon --roles rollout'),
  });
});
