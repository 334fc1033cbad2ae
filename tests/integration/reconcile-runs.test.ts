// @module-tag long
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { stackFolder } from '../../infra/stack/state.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';

const loop = new LoopUnderTest();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

/** The Temporal server loses its database while its supervisor is stopped. */
async function loseDatabase(): Promise<void> {
  const { pid } = loop.supervisor();
  process.kill(pid, 'SIGSTOP');
  try {
    await kill(loop.process('temporal'));
    const folder = stackFolder(loop.home);
    for (const name of readdirSync(folder).filter((file) => /^temporal\.db(-wal|-shm)?$/.test(file)))
      rmSync(join(folder, name));
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

describe('a run whose command ended before it started the workflow', () => {
  it('is started by the stack, and stays paused if its user has paused it before', async () => {
    const [run, held] = [await loop.create(), await loop.create()];
    expect((await runWords(loop.home, ['pause', held.runId])).out).toContain('is paused');
    const asked = (await held.log.status.newest())?.n ?? 0;
    for (const { runId } of [run, held]) await drivenRuns(loop.home).note({ runId, store: loop.store.url, kind: 'rl' });
    await loop.reaches(run, 'completed');
    await loop.until(held, 'its first term and a pause after it', async () => {
      const status = await held.log.status.newest();
      return (await held.log.newestTerm()) !== undefined && status?.state === 'paused' && status.n > asked;
    });
    expect((await held.log.head())?.position).toBe(0);
    await runWords(loop.home, ['resume', held.runId]);
    await loop.reaches(held, 'completed');
    expect(await loop.states(held)).toEqual(await loop.states(run));
    expect((await loop.lines(run)).filter((line) => line.includes('workflow was lost'))).toEqual([]);
  });
});

describe('when the Temporal server loses its database (seed 42)', () => {
  it('a running and a paused run get new workflows by themselves, and end with the undisturbed weights', async () => {
    const recipe = { trainer: { total_training_steps: 6, save_freq: 2 } };
    const undisturbed = await loop.start(recipe);
    await loop.reaches(undisturbed, 'completed');
    const paused = await loop.start(recipe);
    await loop.passes(paused, 2);
    await loop.tell(paused, 'pause');
    await loop.reaches(paused, 'paused');
    const running = await loop.start(recipe);
    await loop.passes(running, 2);
    await loseDatabase();
    await loop.reaches(running, 'completed');
    await loop.said(running, /its workflow was lost: restarted from the store/);
    await loop.said(paused, /its workflow was lost: restarted from the store/);
    expect((await paused.log.status.newest())?.state).toBe('paused');
    await loop.resume(paused);
    await loop.reaches(paused, 'completed');
    const wanted = await loop.states(undisturbed);
    expect(await loop.states(running)).toEqual(wanted);
    expect(await loop.states(paused)).toEqual(wanted);
    // Ended runs are no longer registered.
    await loop.until(running, 'no driven run', async () => (await drivenRuns(loop.home).all()).length === 0);
  });
});
