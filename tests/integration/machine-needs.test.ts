// @module-tag long
/** Jobs with needs go to machines that meet them, whichever others wait for jobs beside them. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { poll } from '../../infra/poll.ts';
import { needRecord } from '../../log/objects/records.ts';
import { runWords } from '../cli.ts';
import { JoinedMachines } from '../joined-machines.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';

const loop = new LoopUnderTest();
const bounded = { everyMs: 50, timeoutMs: patienceMs };
const short = { trainer: { total_training_steps: 3 } };
const machines = new JoinedMachines(loop);

beforeAll(() => machines.up([{ name: 'local', count: 1, roles: ['trainer'], threads: 1 }]));
afterEach(() => machines.remove());
afterAll(() => loop.remove());

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
  await machines.join('left');
  await machines.join('right');
  await machines.areThere('left', 'right');
  const needs = { rollout: { pools: ['right'] }, reward: { pools: ['left', 'nowhere'] } };
  const [placed, anywhere] = [await loop.start({ ...short, fleet: { needs } }), await loop.start(short)];
  await loop.reaches(placed, 'completed');
  await loop.reaches(anywhere, 'completed');
  expect(await poolsOf(placed)).toEqual({ rollout: ['right'], reward: ['left'], update: ['local'] });
});

it('of the trainer go to another machine, though this one has a trainer', async () => {
  await machines.join('far', { roles: ['trainer', 'rollout', 'reward'] });
  await machines.areThere('far');
  const run = await loop.completed({ ...short, fleet: { needs: { trainer: { pools: ['far'] } } } });
  expect(await poolsOf(run)).toEqual({ rollout: ['far'], reward: ['far'], update: ['far'] });
});

it('of GPUs wait for a machine that has them, and say what they wait for', async () => {
  await machines.join('plain');
  await machines.join('small', { gpus: [{ name: 'NVIDIA A10G', gib: 22.5 }] });
  await machines.areThere('plain', 'small');
  const gpu = { count: 2, memory_gib: 80, model: 'H100' };
  const run = await loop.create({ ...short, fleet: { needs: { rollout: { gpu } } } });
  const notes = loop.notes(run);
  await loop.drive(run);
  const why = /no free worker with the role rollout .*with 2 GPUs H100 of 80 GiB is available/;
  expect(await poll(() => notes.some(({ queued }) => why.test(queued ?? '')), bounded)).toBe(true);
  const h100 = { name: 'NVIDIA H100 80GB HBM3', gib: 79.6 };
  await machines.join('one', { gpus: [h100] });
  await machines.join('large', { gpus: [h100, h100] });
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
