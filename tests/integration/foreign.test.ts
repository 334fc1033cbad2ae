// @module-tag long
/** Messages that were not encrypted with the stack's key, sent to the workflows of a real run. */
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { desiredStateSignal, taskQueue } from '../../core/wire/workflow.ts';
import { LoopUnderTest } from '../loop-under-test.ts';

const loop = LoopUnderTest.onLentStack();
let foreign: Client;
beforeAll(async () => {
  const { temporal } = await loop.up();
  foreign = new Client({ connection: await Connection.connect({ address: temporal.address }) });
});
afterAll(async () => {
  await foreign?.connection.close();
  await loop.remove();
});

describe('a run of the stack', () => {
  it('is restarted from the store when its workflow has plain arguments, as in an older build', async () => {
    const run = await loop.start({ trainer: { total_training_steps: 30 } });
    await loop.passes(run, 2);
    const carry = { runId: run.runId, store: loop.store.url };
    await foreign.workflow.start('trainRun', {
      workflowId: run.runId,
      taskQueue,
      args: [carry],
      workflowIdConflictPolicy: 'TERMINATE_EXISTING',
    });
    await loop.said(run, /its workflow was lost: restarted from the store/);
    await loop.reaches(run, 'completed');
  });

  it('reads its position again when another user answers in place of its activity', async () => {
    const run = await loop.start({ trainer: { total_training_steps: 30 } });
    let answered = 0;
    while (answered < 2 && (await run.log.head())?.position !== 30) {
      const { raw } = await foreign.workflow.getHandle(run.runId).describe();
      for (const { activityId } of raw.pendingActivities ?? [])
        answered += await foreign.activity
          .complete({ workflowId: run.runId, activityId: String(activityId) }, { position: 3, iterations: 3 })
          .then(
            () => 1,
            () => 0,
          ); // the workflow has already ended
    }
    expect(answered).toBeGreaterThan(0);
    await loop.reaches(run, 'completed');
    expect((await run.log.head())?.position).toBe(30);
  });

  it('drops a plain signal, and answers only queries that have the key', async () => {
    const run = await loop.start({ trainer: { total_training_steps: 10 } });
    await foreign.workflow.getHandle(run.runId).signal(desiredStateSignal, 'cancel');
    await expect(foreign.workflow.getHandle(run.runId).query('live')).rejects.toThrow();
    // The workflow knows its iterations only after it has read the store.
    await expect.poll(() => loop.client.workflow.getHandle(run.runId).query('live')).toMatchObject({ iterations: 10 });
    await loop.reaches(run, 'completed');
  });
});

describe('a workflow that another user starts', () => {
  it.each(['trainRun', 'sftRun', 'scheduledRun', 'janitor'])('ends without effect: %s', async (type) => {
    const { runId } = await loop.create();
    const args = [{ runId, store: loop.store.url, schedule: 's', generation: 1, time: '2026-01-01T00:00:00Z' }];
    const workflowId = `foreign-${type}`;
    const handle = await foreign.workflow.start(type, { workflowId, taskQueue, args });
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'Foreign' } });
    const { events } = await handle.fetchHistory();
    expect(events?.filter((event) => event.activityTaskScheduledEventAttributes)).toEqual([]);
  });
});
