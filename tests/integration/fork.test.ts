/**
 * A fork starts from a state of another run. Without changes it repeats that run's numbers, and later it needs none of
 * that run's objects.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyLedger } from '../../api/ledger/verify.ts';
import { keys } from '../../core/records/keys.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';

const iterations = 6;
const recipe = {
  trainer: { total_training_steps: iterations, save_freq: 2 },
  actor: { optim: { lr_scheduler_type: 'cosine', lr_warmup_steps: 2 } },
};

const loop = new LoopUnderTest();
beforeAll(async () => void (await loop.up()));
afterAll(() => loop.remove());

const petrel = (...words: string[]) => runWords(loop.home, words);

async function forked(...words: string[]): Promise<StartedRun> {
  const { runId } = (await petrel('fork', ...words, '--wait', '--json')).json<{ runId: string }>();
  return { runId, log: new RunLog(loop.store, runId) };
}

async function expectProven(run: StartedRun): Promise<void> {
  expect((await verifyLedger(loop.store, run.runId, { deep: true })).faults).toEqual([]);
}

describe('a fork (seed 42)', () => {
  it('without changes repeats the numbers of its origin, which may then be deleted', async () => {
    const origin = await loop.completed(recipe);
    const undisturbed = await loop.states(origin);
    // There is no checkpoint of iteration 3, so the trainer replays up to it.
    const fork = await forked(origin.runId, '--from', '3');
    expect(await loop.states(fork)).toEqual(undisturbed.slice(3));
    for (const { log } of [origin, fork]) expect((await log.head())?.profile.blockHash).toBe('blake3');
    expect((await fork.log.checkpoints.names()).map(({ iteration }) => iteration)).toEqual([6, 4, 3]);
    expect(await loop.store.children(keys.pins(origin.runId))).toEqual([]);
    await expectProven(fork);
    await petrel('rm', origin.runId, '-y');
    await kill(loop.process('local-1'));
    await petrel('resume', fork.runId, '--from', '3', '--accept', '--wait');
    expect(await loop.states(fork)).toEqual(undisturbed.slice(3));
    await loop.said(fork, /loaded checkpoint 3/);
    await expectProven(fork);
    expect(
      (await petrel('metrics', fork.runId, '--json')).json<{ iteration: number }[]>().map(({ iteration }) => iteration),
    ).toEqual([4, 5, 6]);
    expect((await petrel('ckpt', 'verify', fork.runId, '--json')).code).toBe(0);
    expect((await petrel('samples', fork.runId, '-i', '4', '--json')).json()).toHaveLength(8);
    await expect(petrel('samples', fork.runId, '-i', '3')).rejects.toMatchObject({
      code: 'NotFound',
      hint: 'there are: 4, 5, 6',
    });
  });

  it('with changes is another experiment, and a fork can be forked', { tags: ['long'] }, async () => {
    const origin = await loop.completed(recipe);
    const before = await loop.states(origin);
    const fork = await forked(origin.runId, '--from', '2', 'actor.optim.lr=0.001', 'seed=7', '--name', 'gentle');
    expect(fork.runId).toMatch(/^gentle-/);
    expect(await loop.states(fork)).toHaveLength(4);
    expect((await loop.states(fork))[0]).not.toBe(before[2]);
    const again = await forked(fork.runId, '--from', '2');
    expect(await loop.states(again)).toEqual(await loop.states(fork));
    const rest = await forked(fork.runId, '--from', '5');
    expect(await loop.states(rest)).toEqual((await loop.states(fork)).slice(3));
    for (const run of [origin, fork, again, rest]) await expectProven(run);
    expect(await loop.states(origin)).toEqual(before);
  });

  it('skips the draws that its origin skips', async () => {
    const origin = await loop.completed(recipe);
    await petrel('resume', origin.runId, '--from', '2', '--skip-draws', '--accept', '--wait');
    const fork = await forked(origin.runId, '--from', '2');
    expect(await loop.states(fork)).toEqual((await loop.states(origin)).slice(2));
    await expectProven(fork);
  });

  it('keeps the model of its origin', async () => {
    const origin = await loop.completed(recipe);
    await expect(petrel('fork', origin.runId, 'model.path=./elsewhere')).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringContaining('model.path'),
    });
    await expect(petrel('fork', origin.runId, '--from', '9')).rejects.toMatchObject({
      code: 'NotFound',
      hint: '--from takes 0 to 6',
    });
  });
});
