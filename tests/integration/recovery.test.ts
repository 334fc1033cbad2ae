import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';

const iterations = 5;
/** Updates that take a while, so that one can be hit. */
const recipe = { actor: { ppo_mini_batch_size: 2, ppo_epochs: 100 }, trainer: { total_training_steps: iterations, save_freq: 2 } };

const loop = new LoopUnderTest();
let undisturbed: string[];
beforeAll(async () => {
  await loop.up();
  const run = await loop.start(recipe);
  await loop.reaches(run, 'completed');
  undisturbed = await loop.states(run);
});
afterAll(() => loop.remove());

/** A batch that is committed and not yet applied: the update is under way. */
async function updating(run: StartedRun, k: number): Promise<void> {
  await loop.until(run, `the update of iteration ${k}`, async () => {
    const head = await run.log.head();
    return head?.position === k - 1 && head.pending !== undefined;
  });
}

describe('a deterministic run (seed 42) goes on by itself to the same weights', () => {
  it('when its only worker is killed after an iteration', async () => {
    const run = await loop.start(recipe);
    await loop.passes(run, 3);
    await kill(loop.process('local-1'));
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    await loop.said(run, /^info local-1: (loaded checkpoint \d|replayed iteration \d)$/);
  });

  it('when its only worker is killed in the middle of an update', async () => {
    const run = await loop.start(recipe);
    await updating(run, 4);
    await kill(loop.process('local-1'));
    const head = await run.log.head();
    expect([head?.position, head?.pending?.record.iteration]).toEqual([3, 4]);
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    await loop.said(run, /^info local-1: replayed iteration 3$/);
  });

  it('when the control process is killed in the middle of an update', async () => {
    const run = await loop.start(recipe);
    await updating(run, 2);
    await kill(loop.process('control'));
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
  });

  it('when NATS is killed in the middle of an update', async () => {
    const run = await loop.start(recipe);
    await updating(run, 2);
    await kill(loop.process('nats'));
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
  });
});
