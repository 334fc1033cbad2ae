import { actorOf } from '../../core/records/components.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LoopUnderTest } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';

const loop = new LoopUnderTest();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

describe('an update without an optimiser step (seed 42)', () => {
  it('is recorded as skipped and changes nothing; after three in a row the run pauses, and continues after a resume', async () => {
    // Scores are finite, but their standard deviation overflows, so the advantages are not numbers.
    const huge = loop.scorer('huge', `return solutionStr.length % 2 === 0 ? 1e300 : -1e300;`);
    const run = await loop.start({
      reward: { custom_reward_function: { path: huge, deterministic: true } },
      trainer: { total_training_steps: 9, max_bad_steps: 3 },
    });
    expect((await loop.reaches(run, 'paused')).reason).toMatchObject({
      code: 'TooManyBadSteps',
      message: expect.stringMatching(/^3 updates in a row took no optimiser step; last: .*NaN/),
      hint: expect.stringContaining('actor.optim.lr'),
    });
    const made = await loop.iterations(run);
    const start = (await run.log.newestTerm())?.record;
    expect(made.map(({ update }) => update.outcome)).toEqual(['skipped', 'skipped', 'skipped']);
    for (const { update } of made) {
      expect(update).toMatchObject({
        stateDigest: start?.startState,
        components: { actor: { weightsDigest: start && actorOf(start.components).weightsDigest } },
        reason: expect.stringContaining('no optimiser step taken'),
      });
      expect(actorOf(update.components).steps).toEqual([expect.objectContaining({ taken: false, gradNorm: 'NaN' })]);
    }
    expect(made.map(({ update }) => update.after.badSteps)).toEqual([1, 2, 3]);
    expect(made.map(({ update }) => update.after.optimizerSteps)).toEqual([{ actor: 1 }, { actor: 2 }, { actor: 3 }]);

    // A new trainer replays the records: it follows their outcomes and does not attempt the steps again.
    await kill(loop.process('local-1'));
    await loop.resume(run);
    await loop.passes(run, 4);
    await loop.said(run, /iteration 3 was skipped: no optimiser step taken/);
    expect((await loop.reaches(run, 'paused')).reason).toMatchObject({
      message: expect.stringMatching(/^4 updates in a row/),
    });
    await loop.tell(run, 'stop');
    await loop.reaches(run, 'stopped');
    // These positions share one state, and the checkpoint belongs to the last of them.
    const head = await run.log.head();
    expect((await run.log.checkpoints.all()).map(({ record }) => [record.iteration, record.stateDigest])).toEqual([
      [head?.position, start?.startState],
    ]);
  });

  it('and a batch whose groups all failed has no learning signal, which does not end the run', async () => {
    const run = await loop.start({
      deterministic: 'replay',
      trainer: { total_training_steps: 3, max_bad_steps: 9 },
      reward: {
        max_failed_fraction: 1,
        custom_reward_function: { path: loop.scorer('nothing', `throw new Error('no');`) },
      },
    });
    await loop.reaches(run, 'completed');
    const made = await loop.iterations(run);
    expect(made.map(({ update }) => update.outcome)).toEqual(['skipped', 'skipped', 'skipped']);
    expect(made.map(({ update }) => update.reason)).toEqual(
      made.map(() => 'the batch has no samples: every group was filtered'),
    );
    expect(made.flatMap(({ batch }) => batch.draws).every(({ fate }) => fate === 'filtered')).toBe(true);
  });

  it('with an absurd learning rate leads to a pause or to finite records, never to a broken record', async () => {
    const run = await loop.start({
      actor: { optim: { lr: 1e30 } },
      trainer: { total_training_steps: 8, max_bad_steps: 2 },
    });
    const state = await loop.until(run, 'an end or a pause', async () => {
      const status = await run.log.status.newest();
      if (status?.state === 'failed') throw new Error(JSON.stringify(status.reason));
      return status?.state === 'paused' || status?.state === 'completed' ? status : undefined;
    });
    console.log(
      state.state,
      state.reason?.code,
      (await loop.iterations(run)).map(
        ({ update }) => `${update.outcome} ${actorOf(update.components).steps[0]?.gradNorm}`,
      ),
    );
    expect(state.state).toBe('paused');
  });
});
