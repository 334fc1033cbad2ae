// @module-tag long
/**
 * A machine behind a long link that has joined: it takes part where it helps, and where every job waits for its
 * messages the iterations go on without it.
 */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { MachineStatus } from '../../api/runs/machine-status.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { needRecord } from '../../log/objects/records.ts';
import { runWords } from '../cli.ts';
import { JoinedMachines } from '../joined-machines.ts';
import { essences } from '../killed-run.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const machines = new JoinedMachines(loop);
/** 80 ms there and back, and one piece in a hundred is lost. */
const link = { delayMs: 40, loss: 0.01 };

beforeAll(() =>
  machines.up([
    { name: 'train', count: 1, roles: ['trainer', 'reward'], threads: 1 },
    { name: 'sample', count: 1, roles: ['rollout'], threads: 1 },
  ]),
);
afterEach(() => machines.remove());
afterAll(() => loop.remove());

/** The share of the run's rollout jobs that machines of this pool did. */
async function shareOf(pool: string, { runId }: StartedRun): Promise<number> {
  const by: string[] = [];
  for (const name of await loop.store.children(keys.results(runId))) {
    const { record } = await needRecord(loop.store, keys.results(runId) + name, resultRecord);
    if (record.stage === 'rollout') by.push(record.writer.process);
  }
  return by.filter((process) => process.startsWith(`${pool}-`)).length / by.length;
}

it('leaves short iterations to near ones, and the samples are the same', async () => {
  const recipe = { trainer: { total_training_steps: 40 } };
  const alone = await loop.completed(recipe);
  await machines.join('far', { link });
  await machines.areThere('far');
  const run = await loop.completed(recipe);
  expect(await shareOf('far', run)).toBeLessThan(0.2);
  expect(await essences(loop, run)).toEqual(await essences(loop, alone));
  await loop.said(run, /workers with a round trip above 10 ms take no part for now/);
  const { workers } = (await runWords(loop.home, ['status', '--json'])).json<MachineStatus>();
  const [near, far] = ['sample-1', 'far-'].map((name) => workers.find(({ worker }) => worker.startsWith(name)));
  expect(near?.roundTripMs).toBeLessThan(40);
  expect(far?.roundTripMs).toBeGreaterThanOrEqual(80);
});

it('takes part where sampling takes longer than its messages', async () => {
  await loop.up([{ name: 'train', count: 1, roles: ['trainer', 'reward'], threads: 1 }]);
  await machines.join('near', { roles: ['rollout'], tokensPerSecond: 120 });
  await machines.join('far', { roles: ['rollout'], tokensPerSecond: 120, link });
  await machines.areThere('near', 'far');
  // A job for each prompt, and more jobs than the near one takes at a time.
  const recipe = {
    data: { train_batch_size: 24, max_response_length: 8 },
    rollout: { n: 2, max_num_seqs: 2 },
    actor: { ppo_mini_batch_size: 24 },
    trainer: { total_training_steps: 10 },
  };
  const run = await loop.completed(recipe);
  expect(await shareOf('far', run)).toBeGreaterThan(0.25);
});
