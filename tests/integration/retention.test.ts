// @module-tag long
/** Retention on a real run: the janitor removes what the floor frees, and the run continues to the same weights. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyBatches, verifyCheckpoints } from '../../api/checkpoints/verify.ts';
import { trainingSamples } from '../../api/runs/samples.ts';
import { keys } from '../../core/records/keys.ts';
import { readRetention } from '../../log/run/retention-log.ts';
import { sweepStore } from '../../log/retention/sweep.ts';
import { janitorId } from '../../workers/control/reconcile-janitors.ts';
import { LoopUnderTest, separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';

const iterations = 12;
const recipe = (keep: number | null) => ({
  data: { val_files: loop.validationFile },
  trainer: { total_training_steps: iterations, save_freq: 2, test_freq: 4, max_actor_ckpt_to_keep: keep },
});
const blobs = async (run: StartedRun) => (await loop.store.children(keys.blobs(run.runId))).length;
/** Two passes without a grace period: the second removes what the first has marked. */
const sweepTwice = async () => {
  for (let pass = 0; pass < 2; pass++) {
    const { runs } = await sweepStore(loop.store, { now: new Date(), graceMs: 0 });
    expect(runs.map(({ problem }) => problem).filter((problem) => problem !== undefined)).toEqual([]);
  }
};

const loop = new LoopUnderTest();
let everything: StartedRun;
let run: StartedRun;
beforeAll(async () => {
  await loop.up(separatePools);
  everything = await loop.start(recipe(null));
  await loop.reaches(everything, 'completed');
  run = await loop.start(recipe(1));
});
afterAll(() => loop.remove());

describe('a run that keeps two checkpoints (one was asked for)', () => {
  it('continues during a janitor’s passes, and after its trainer was killed, to the weights of a run that keeps everything', async () => {
    await loop.passes(run, 7);
    await sweepTwice();
    expect((await readRetention(run.log)).floor).toBeGreaterThanOrEqual(4);
    await kill(loop.process('train-1'));
    await loop.until(run, 'its end', async () => {
      await sweepStore(loop.store, { now: new Date(), graceMs: 0 });
      return (await run.log.status.newest())?.state === 'completed';
    });
    expect(await loop.states(run)).toEqual(await loop.states(everything));
  });

  it('has two checkpoints, the batches after the older one, and the weights of its end, all intact', async () => {
    await sweepTwice();
    expect((await run.log.checkpoints.all()).map(({ record }) => record.iteration)).toEqual([12, 10]);
    const verdicts = [
      ...(await verifyCheckpoints(run.log, undefined, () => {})),
      ...(await verifyBatches(run.log, 10, () => {})),
    ];
    expect(verdicts.filter(({ ok }) => !ok)).toEqual([]);
    expect((await loop.store.children(keys.allWeights(run.runId))).length).toBeLessThanOrEqual(3);
    expect(await blobs(run)).toBeLessThan((await blobs(everything)) / 2);
    console.log(`blobs: ${await blobs(run)} of ${await blobs(everything)}`);
  });

  it('keeps every decision: the log and all results can still be read', async () => {
    expect(await loop.iterations(run)).toHaveLength(iterations);
    expect((await run.log.evaluations.all()).map(({ iteration }) => iteration)).toEqual([4, 8, 12]);
    for (const { batch } of await loop.iterations(run))
      for (const job of batch.results) expect(await loop.store.head(keys.result(run.runId, job))).toBeDefined();
  });

  it('reports removed samples as removed by retention', async () => {
    const ports = { log: run.log, cache: loop.home };
    const made = await loop.iterations(run);
    await expect(trainingSamples(made[2]!.batch, ports)).rejects.toMatchObject({ code: 'RemovedByRetention' });
    expect(await trainingSamples(made[11]!.batch, ports)).toHaveLength(16);
  });

  it('has removed nothing of the other run, which keeps everything', async () => {
    expect((await everything.log.checkpoints.all()).map(({ record }) => record.iteration)).toEqual([
      12, 10, 8, 6, 4, 2,
    ]);
    expect((await verifyBatches(everything.log, 0, () => {})).every(({ ok }) => ok)).toBe(true);
  });
});

describe('the janitor of the stack', () => {
  it('is a Schedule whose workflow cleans the store', async () => {
    const id = janitorId(loop.store.url);
    const schedule = loop.client.schedule.getHandle(id);
    await loop.until(
      run,
      'the schedule of the janitor',
      async () =>
        (await loop.client.schedule
          .getHandle(id)
          .describe()
          .catch(() => undefined)) !== undefined,
    );
    await schedule.trigger();
    const workflow = await loop.until(run, 'the end of its workflow', async () => {
      const [action] = (await schedule.describe()).info.recentActions;
      const workflowId = action?.action.workflow.workflowId;
      return (
        workflowId !== undefined &&
        (await loop.client.workflow.getHandle(workflowId).describe()).status.name === 'COMPLETED' &&
        workflowId
      );
    });
    expect(workflow).toContain(id);
  });
});
