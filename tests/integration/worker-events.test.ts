// @module-tag long
/**
 * What becomes of workers is a record in the log of a run, and counted in the metrics of the iteration in which it
 * happened.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LogLine } from '../../core/wire/messages.ts';
import type { WorkerEvent } from '../../core/wire/worker-event.ts';
import { signalProcess } from '../../infra/stack/process.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
/** Nobody else samples: while the worker is away, the run waits. */
const pools = [
  { name: 'train', count: 1, roles: ['trainer' as const], threads: 1 },
  { name: 'sample', count: 1, roles: ['rollout' as const, 'reward' as const], threads: 1 },
];
beforeAll(() => loop.up(pools));
afterAll(() => loop.remove());

/** The events as `petrel logs --json` shows them. */
async function eventsOf(run: StartedRun): Promise<WorkerEvent[]> {
  const lines = (await runWords(loop.home, ['logs', run.runId, '--json', '-n', '1000'])).json<LogLine[]>();
  return lines.flatMap(({ event }) => event ?? []);
}

/** Counts by iteration. */
async function counted(run: StartedRun, name: string): Promise<number[]> {
  return (await loop.iterations(run)).map(({ update }) => Number(update.timings[`fleet/${name}`]));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Sends the signal to the only sampler after the first iteration, and waits until the run has ended. */
async function disturbed(signal: 'SIGKILL' | 'SIGTERM'): Promise<StartedRun> {
  const run = await loop.start({ trainer: { total_training_steps: 12 } });
  await loop.passes(run, 1);
  signalProcess(loop.process('sample-1'), signal);
  await loop.reaches(run, 'completed');
  await loop.said(run, /replaced: worker sample-1 by sample-1/);
  return run;
}

it('a worker that is killed is lost, and the next one replaces it: as records, and by iteration', async () => {
  const run = await disturbed('SIGKILL');
  const events = await eventsOf(run);
  expect(events.map(({ type, worker }) => `${type} ${worker}`)).toEqual([
    'lost sample-1',
    'joined sample-1',
    'replaced sample-1',
  ]);
  const [lost, joined, replaced] = events;
  expect(lost?.incarnation).not.toBe(joined?.incarnation);
  expect(replaced).toMatchObject({ incarnation: lost?.incarnation, by: { worker: 'sample-1' }, roles: lost?.roles });
  for (const name of ['lost', 'joined', 'replaced']) expect(sum(await counted(run, name)), name).toBe(1);
  expect(sum(await counted(run, 'notices'))).toBe(0);
  expect((await counted(run, 'lost'))[0], 'lost before the first iteration').toBe(0);
  expect((await counted(run, 'workers')).at(-1)).toBe(2);
});

it('a worker that is told to leave has a notice, and is not lost', async () => {
  const run = await disturbed('SIGTERM');
  expect((await eventsOf(run)).map(({ type, because }) => [type, because])).toEqual([
    ['notice', 'it was told to leave'],
    ['joined', undefined],
    ['replaced', undefined],
  ]);
  expect(sum(await counted(run, 'notices'))).toBe(1);
  expect(sum(await counted(run, 'lost'))).toBe(0);
  const metrics = (await runWords(loop.home, ['metrics', run.runId, 'fleet/*'])).out;
  expect(metrics).toMatch(/fleet\/workers/);
});
