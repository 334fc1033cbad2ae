// @module-tag long
/**
 * A run with `trainer.standby: 1`: a second trainer applies every batch, leads at once when the first is lost, and
 * checks it.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mergeTrees } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import type { Presence } from '../../core/wire/messages.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { runWords } from '../cli.ts';
import { essences as essencesOf } from '../killed-run.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

const pools: readonly WorkerPool[] = [
  { name: 'train', count: 2, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: 1, roles: ['rollout', 'reward'], threads: 1 },
];

const iterations = 24;
const alone: Tree = { trainer: { total_training_steps: iterations, save_freq: 10 } };
const withStandby = mergeTrees(alone, { trainer: { standby: 1 } });

const { loop, injector } = loopWithFaults({
  PETREL_PRELOAD: join(import.meta.dirname, 'flipped-bit.mjs'),
});
const flipOrder = join(loop.home, 'flip-bit-of');
let undisturbed: StartedRun;
beforeAll(async () => {
  process.env['FLIP_BIT_OF'] = flipOrder;
  await loop.up(pools);
  undisturbed = await loop.completed(alone);
});
afterAll(() => void delete process.env['FLIP_BIT_OF']);

const essences = (run: StartedRun) => essencesOf(loop, run);

/** The two trainers of a run, once one of them follows the other. */
async function trainersOf(run: StartedRun): Promise<{ readonly leader: string; readonly standby: string }> {
  await loop.said(run, /its standby .* is ready/);
  const isOf = (one: Presence) => one.lease === run.runId;
  return loop.until(run, 'a leader and a standby', async () => {
    const workers = (await listWorkers(loop.nc)).filter(isOf);
    const standby = workers.find(({ standsBy }) => standsBy === true)?.worker;
    const leader = workers.find(({ standsBy }) => standsBy !== true)?.worker;
    return leader !== undefined && standby !== undefined && { leader, standby };
  });
}

/** What a worker has loaded or replayed for a run. */
const restoredBy = async (run: StartedRun, worker: string) =>
  (await loop.lines(run)).filter(
    (line) => line.includes(` ${worker}: `) && /loaded checkpoint|replayed|skipped/.test(line),
  );

describe('a run with a standby (seed 42)', () => {
  it('ends in the same bits as without one, and status names the standby', async () => {
    const run = await loop.start(withStandby);
    const { standby } = await trainersOf(run);
    expect((await runWords(loop.home, ['status'])).out).toMatch(new RegExp(`${standby} .*${run.runId} \\(standby\\)`));
    await loop.reaches(run, 'completed');
    expect(await essences(run)).toEqual(await essences(undisturbed));
  });

  it.each([
    ['in the middle of an update', 'write.step'],
    ['before its result is written', 'result.before'],
    ['after its result is written', 'result.after'],
  ] as const)(
    'goes on with the standby, which loads and replays nothing, when the leader is killed %s',
    async (_, point) => {
      const run = await loop.start(withStandby);
      const { leader, standby } = await trainersOf(run);
      const before = await restoredBy(run, standby);
      const id = `${point}-${run.runId}`;
      injector.arm({
        id,
        point,
        process: leader,
        action: 'stand',
        facts: point === 'write.step' ? {} : { stage: 'update' },
      });
      const { identity } = await injector.stands(id, AbortSignal.timeout(patienceMs));
      injector.disarm(id);
      if (identity === undefined) throw new Error(`${leader} is gone`);
      const at = (await run.log.head())?.position ?? 0;
      await injector.kill([{ name: leader, identity }]);
      await loop.passes(run, Math.min(at + 3, iterations));
      expect(await restoredBy(run, standby)).toEqual(before);
      await loop.reaches(run, 'completed');
      expect(await essences(run)).toEqual(await essences(undisturbed));
    },
  );

  it('goes on without the standby when that one is killed, and gets another', { tags: ['long'] }, async () => {
    const run = await loop.start(withStandby);
    const { standby } = await trainersOf(run);
    await kill(loop.process(standby));
    await loop.reaches(run, 'completed');
    expect(await essences(run)).toEqual(await essences(undisturbed));
  });

  it('gives its standby to a run that needs a trainer', { tags: ['long'] }, async () => {
    const run = await loop.start(withStandby);
    await trainersOf(run);
    // A run whose standby is taken while it still loads does not say so.
    await loop.said(run, /its standby \S+ is ready/);
    const other = await loop.completed(alone);
    await loop.said(run, /has no standby: no second trainer is free/);
    expect(await essences(other)).toEqual(await essences(undisturbed));
    await loop.reaches(run, 'completed');
    expect(await essences(run)).toEqual(await essences(undisturbed));
  });

  it.each(['leader', 'standby'] as const)(
    'pauses before anything is built on a state in which a bit of its %s was flipped, names both machines, and is resumed to the same bits',
    { tags: ['long'] },
    async (who) => {
      const run = await loop.start(withStandby);
      const trainers = await trainersOf(run);
      writeFileSync(flipOrder, trainers[who]);
      const { reason } = await loop.reaches(run, 'paused');
      expect(existsSync(flipOrder)).toBe(false);
      expect(reason).toMatchObject({ code: 'TrainersDiffer' });
      for (const name of Object.values(trainers)) expect(reason?.message).toContain(name);
      const good = (await essences(undisturbed)).slice(0, (await run.log.head())?.position);
      expect(await essences(run)).toEqual(good);
      await loop.resume(run);
      await loop.reaches(run, 'completed');
      expect(await essences(run)).toEqual(await essences(undisturbed));
    },
  );
});
