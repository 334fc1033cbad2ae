import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = LoopUnderTest.onLentStack();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

/** A run that holds the trainer until the test releases it; a paused run would release its lease. */
const long = { trainer: { total_training_steps: 100_000 } };

async function queuedBehind(holder: StartedRun, overrides = {}): Promise<StartedRun> {
  const run = await loop.create(overrides);
  const notes = loop.notes(run);
  await loop.drive(run);
  await loop.until(run, 'a note that says who holds the trainer', async () =>
    notes.some(({ queued }) => queued === `the trainer is busy with ${holder.runId}`),
  );
  return run;
}

describe('two runs on one trainer (seed 42)', () => {
  it('train one after the other, and the second shows for which run it waits', async () => {
    const first = await loop.start(long);
    await loop.passes(first, 3);
    const second = await queuedBehind(first);
    expect(await second.log.status.newest()).toMatchObject({ state: 'queued' });
    expect(await loop.client.workflow.getHandle(second.runId).query('live')).toMatchObject({
      state: 'queued',
      stage: 'open',
    });
    expect(await second.log.head()).toBeUndefined();

    await loop.tell(first, 'stop');
    await loop.reaches(first, 'stopped');
    await loop.reaches(second, 'completed');
    // The runs did not disturb each other: the same recipe gave the same states.
    expect(await loop.states(second)).toEqual((await loop.states(first)).slice(0, 3));
  });

  it('get it in the order of their first request', { tags: ['long'] }, async () => {
    const first = await loop.start(long);
    await loop.passes(first, 1);
    const waiting = [await queuedBehind(first), await queuedBehind(first), await queuedBehind(first)];
    await loop.tell(first, 'stop');
    await Promise.all(waiting.map((run) => loop.reaches(run, 'completed')));
    const begun = await Promise.all(waiting.map(async ({ log }) => (await log.newestTerm())?.record.writer.at ?? ''));
    expect(begun).toEqual([...begun].sort());
    expect(new Set(begun).size).toBe(3);
  });

  it('do the same when one is deterministic and the other is not', { tags: ['long'] }, async () => {
    const first = await loop.start(long);
    await loop.passes(first, 1);
    const second = await queuedBehind(first, { deterministic: false });
    await loop.tell(first, 'cancel');
    await loop.reaches(second, 'completed');
    expect((await second.log.head())?.profile).toMatchObject({ id: 'any', deterministic: false });
  });

  it('can be stopped while they wait, and save nothing', async () => {
    const first = await loop.start(long);
    await loop.passes(first, 1);
    const [stopped, cancelled] = [await queuedBehind(first), await queuedBehind(first)];
    await loop.tell(stopped, 'stop');
    await loop.tell(cancelled, 'cancel');
    expect(await loop.ended(stopped)).toEqual({ state: 'stopped', position: 0 });
    expect(await loop.ended(cancelled)).toEqual({ state: 'cancelled', position: 0 });
    await loop.tell(first, 'pause');
    await loop.reaches(first, 'paused');
    // A paused run releases its trainer, and a run that was stopped while it waited starts at iteration 1.
    await loop.resume(stopped);
    await loop.reaches(stopped, 'completed');
    await loop.tell(first, 'cancel');
    await loop.reaches(first, 'cancelled');
  });
});
