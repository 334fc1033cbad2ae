// @module-tag long
import { beforeAll, describe, expect, it } from 'vitest';
import { skipBatch } from '../../api/runs/skip.ts';
import type { ArmedFault } from '../../log/faults/index.ts';
import { readRecord } from '../../log/objects/records.ts';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { updateRecord } from '../../core/records/schema.ts';
import { separatePools } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

const { loop, injector } = loopWithFaults();

beforeAll(async () => {
  await loop.up(separatePools);
});

describe('a sample that crashes every rollout engine (seed 42)', () => {
  const poisoned: ArmedFault = {
    id: 'poison',
    point: 'sample.token',
    facts: { draw: 6, sample: 2 },
    action: 'segv',
    always: true,
  };

  it('is the only sample without a response, and the run continues', async () => {
    injector.arm(poisoned);
    const run = await loop.completed({ deterministic: 'replay', trainer: { total_training_steps: 3 } });
    const draws = (await loop.iterations(run)).flatMap(({ batch }) => batch.draws);
    expect(draws.map(({ draw, fate }) => `${draw} ${fate}`)).toEqual(
      Array.from({ length: 12 }, (_, draw) => `${draw} trained`),
    );
    const lost = draws.flatMap(({ draw, samples }) =>
      samples.flatMap((sample, i) => (typeof sample === 'string' ? [`${draw} ${i}: ${sample}`] : [])),
    );
    expect(lost).toEqual(['6 2: poison: it crashed every worker that sampled it']);
    // Either its successor is heard first, or the end of its connection.
    await loop.said(
      run,
      /warn control: worker sample-\d (ended \(SIGSEGV\) and was started again|is gone: its connection closed)/,
    );
    await loop.said(run, /sample 2 of draw 6 \(row \d+\) is poison/);
  });

  it('pauses a deterministic run, which continues to the undisturbed weights when the poison is removed', async () => {
    const recipe = { trainer: { total_training_steps: 3 } };
    const undisturbed = await loop.completed(recipe);
    injector.arm(poisoned);
    const run = await loop.start(recipe);
    expect((await loop.reaches(run, 'paused')).reason).toMatchObject({
      code: 'SampleConvicted',
      message: expect.stringMatching(/^sample 2 of draw 6 /),
      hint: expect.stringContaining('resume'),
    });
    injector.disarm('poison');
    await loop.resume(run);
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(await loop.states(undisturbed));
  });
});

describe('a batch that crashes every trainer (seed 42)', () => {
  it('pauses the run with the offer to skip it; a replay skips it too', async () => {
    injector.arm({ id: 'batch', point: 'write.step', facts: { iteration: 2 }, action: 'segv', always: true });
    const run = await loop.start({ trainer: { total_training_steps: 4 } });
    expect((await loop.reaches(run, 'paused')).reason).toMatchObject({
      code: 'BatchConvicted',
      message: expect.stringMatching(/^the batch of iteration 2 crashed every trainer that applied it/),
      hint: expect.stringContaining(`petrel resume ${run.runId} --skip`),
    });
    expect(await skipBatch({ runId: run.runId, log: run.log } as Parameters<typeof skipBatch>[0])).toBe(
      'iteration 2 is skipped: its batch is not trained on',
    );
    await loop.resume(run);
    await loop.passes(run, 3);
    await kill(loop.process('train-1'));
    await loop.reaches(run, 'completed');
    const made = await loop.iterations(run);
    expect(made.map(({ update }) => update.outcome)).toEqual(['applied', 'skipped', 'applied', 'applied']);
    expect(made[1]?.update).toMatchObject({
      reason: "skipped by the run's owner",
      stateDigest: made[0]?.update.stateDigest,
      after: { cursor: 8, optimizerSteps: { actor: 2 }, badSteps: 0 },
    });
    await loop.said(run, /iteration 2 was skipped: skipped by the run's owner/);
    const stored = await readRecord(loop.store, keys.update(run.runId, 1, 2), updateRecord);
    expect(stored && actorOf(stored.record.components).steps).toEqual([]);
  });

  it('cannot be skipped when no batch waits, nor while the run is running', async () => {
    const run = await loop.completed({ trainer: { total_training_steps: 2 } });
    await expect(
      skipBatch({ runId: run.runId, log: run.log } as Parameters<typeof skipBatch>[0]),
    ).rejects.toMatchObject({ code: 'NothingToSkip' });
  });
});

describe('a worker that fails everything (seed 42)', () => {
  it('stops pulling and is unhealthy; the run continues with other workers, and a new process replaces it', async () => {
    const before = loop.process('sample-1');
    injector.arm({ id: 'broken', point: 'job.begin', process: 'sample-1', action: 'throw', always: true });
    const run = await loop.completed({ trainer: { total_training_steps: 6 } });
    await loop.said(run, /error sample-1: rollout .*injected fault broken/);
    const again = await loop.until(run, 'a fresh sample-1', async () => {
      const now = loop.processIfThere('sample-1');
      return now !== undefined && now.pid !== before.pid ? now : undefined;
    });
    expect(again.pid).not.toBe(before.pid);
  });
});
