/**
 * resume --from on the real stack: later iterations are abandoned, and a redo gives the same or other numbers, as
 * requested.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyLedger } from '../../api/ledger/verify.ts';
import { keys } from '../../core/records/keys.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const iterations = 6;
const recipe = { trainer: { total_training_steps: iterations, save_freq: 2 } };

const loop = LoopUnderTest.onLentStack();
let undisturbed: string[];
beforeAll(async () => {
  await loop.up();
  const run = await loop.completed(recipe);
  undisturbed = await loop.states(run);
});
afterAll(() => loop.remove());

const petrel = (...words: string[]) => runWords(loop.home, words);
const drawsOf = async (run: StartedRun) =>
  (await loop.iterations(run)).map(({ batch }) => batch.draws.map(({ draw }) => draw));

/** Verifies the run's ledger and returns its states. */
async function provenStates(run: StartedRun): Promise<string[]> {
  expect((await verifyLedger(loop.store, run.runId, { deep: true })).faults).toEqual([]);
  return loop.states(run);
}

describe('resume --from (seed 42)', () => {
  it('lists the abandoned iterations, needs --accept, and repeats the numbers', async () => {
    const run = await loop.completed(recipe);
    await expect(petrel('resume', run.runId, '--from', '3')).rejects.toMatchObject({
      message: expect.stringContaining('iterations 4 to 6 no longer count'),
      hint: 'confirm with --accept',
    });
    const resumed = await petrel('resume', run.runId, '--from', '3', '--accept', '--wait', '--json');
    expect(resumed.err).toMatch(
      /ITERATION +REWARD +CHECKPOINT\n *4 +[\d.]+ +out of reach\n *5 +[\d.]+ +-\n *6 +[\d.]+ +out of reach/,
    );
    expect(resumed.json()).toMatchObject({
      iteration: iterations,
      term: 2,
      state: 'completed',
      reason: 'redo from iteration 3',
      abandoned: [{ iteration: 4, checkpoint: true }, { iteration: 5 }, { iteration: 6 }],
    });
    expect(await provenStates(run)).toEqual(undisturbed);
    expect((await loop.iterations(run)).map(({ update }) => update.term)).toEqual([1, 1, 1, 2, 2, 2]);
    expect(
      (await petrel('metrics', run.runId, '--json'))
        .json<{ iteration: number; term: number }[]>()
        .map(({ iteration, term }) => [iteration, term]),
    ).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
      [4, 2],
      [5, 2],
      [6, 2],
    ]);
    expect((await petrel('samples', run.runId, '-i', '4', '--json')).json()).toHaveLength(8);
    expect((await petrel('ckpt', 'verify', run.runId, '--json')).code).toBe(0);
    expect((await petrel('status', run.runId, '--json')).json()).toMatchObject({
      term: 2,
      state: 'completed',
      iteration: iterations,
    });
  });

  it('can start from the base again, and a redo of a redo may go back further', async () => {
    const run = await loop.completed(recipe);
    await petrel('resume', run.runId, '--from', '4', '--accept', '--wait');
    await petrel('resume', run.runId, '--from', '0', '--accept', '--wait');
    expect((await run.log.chain()).map(({ record }) => record.term)).toEqual([3, 1]);
    expect(await provenStates(run)).toEqual(undisturbed);
  });

  it('with --skip-draws uses other draws, and every draw has one outcome', async () => {
    const run = await loop.completed(recipe);
    await petrel('resume', run.runId, '--from', '2', '--skip-draws', '--accept', '--wait');
    const draws = await drawsOf(run);
    expect(draws.slice(0, 3)).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [24, 25, 26, 27],
    ]);
    expect((await run.log.newestTerm())?.record.skippedDraws).toEqual([[8, 24]]);
    const states = await provenStates(run);
    expect(states.slice(0, 2)).toEqual(undisturbed.slice(0, 2));
    expect(states[2]).not.toBe(undisturbed[2]);
  });

  it('is the only way to continue a cancelled run', { tags: ['long'] }, async () => {
    const run = await loop.start(recipe);
    await loop.passes(run, 2);
    await loop.tell(run, 'cancel');
    await loop.reaches(run, 'cancelled');
    await expect(petrel('resume', run.runId)).rejects.toMatchObject({ code: 'Conflict' });
    await petrel('resume', run.runId, '--from', '1', '--accept', '--wait');
    expect(await provenStates(run)).toEqual(undisturbed);
  });

  it('works in a paused run, whose workflow continues in the new term', { tags: ['long'] }, async () => {
    const run = await loop.start(recipe);
    await loop.passes(run, 2);
    await loop.tell(run, 'pause');
    await loop.reaches(run, 'paused');
    await petrel('resume', run.runId, '--from', '1', '--accept', '--wait');
    expect(await provenStates(run)).toEqual(undisturbed);
    expect((await loop.iterations(run)).map(({ update }) => update.term)).toEqual([1, 2, 2, 2, 2, 2]);
  });

  it('is refused while the run is running, and so is a second resume', async () => {
    const run = await loop.start(recipe);
    await loop.reaches(run, 'running');
    await expect(petrel('resume', run.runId, '--from', '0', '--accept')).rejects.toMatchObject({
      code: 'Conflict',
      hint: expect.stringContaining('petrel stop'),
    });
    await expect(petrel('resume', run.runId)).rejects.toMatchObject({
      code: 'Conflict',
      message: expect.stringContaining('is running already: controlled by'),
    });
    await loop.reaches(run, 'completed');
    expect(await provenStates(run)).toEqual(undisturbed);
    expect(await run.log.store.children(keys.positions(run.runId, 1))).not.toContain(`${iterations + 1}/`);
  });
});
