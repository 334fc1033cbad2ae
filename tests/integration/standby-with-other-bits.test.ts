// @module-tag long
/**
 * A run with `trainer.standby: 1` and `deterministic: false` whose trainers compute in other bits, as on two kinds of
 * machines: when the leader is lost, the standby leads with its own state, in a new term, and loads and replays
 * nothing.
 */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { mergeTrees } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import type { Presence } from '../../core/wire/messages.ts';
import type { FaultPoint } from '../../log/faults/index.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

const pools: readonly WorkerPool[] = [
  { name: 'train', count: 2, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: 1, roles: ['rollout', 'reward'], threads: 1 },
];

const iterations = 16;
const recipe: Tree = {
  deterministic: false,
  trainer: { total_training_steps: iterations, save_freq: -1, standby: 1 },
};

const { loop, injector } = loopWithFaults({
  PETREL_PRELOAD: join(import.meta.dirname, '../black-box/perturbed-engine.mjs'),
});
beforeAll(() => loop.up(pools));

/** The two trainers of a run, once one of them follows the other. */
async function trainersOf(run: StartedRun): Promise<{ readonly leader: string; readonly standby: string }> {
  return loop.until(run, 'a leader and a standby', async () => {
    const isOf = (one: Presence) => one.lease === run.runId;
    const workers = (await listWorkers(loop.nc)).filter(isOf);
    const standby = workers.find(({ standsBy }) => standsBy === true)?.worker;
    const leader = workers.find(({ standsBy }) => standsBy !== true)?.worker;
    return leader !== undefined && standby !== undefined && { leader, standby };
  });
}

const restored = async (run: StartedRun, worker?: string) =>
  (await loop.lines(run)).filter(
    (line) => (worker === undefined || line.includes(` ${worker}: `)) && /loaded checkpoint|replayed/.test(line),
  );

const terms = async (run: StartedRun) => {
  run.log.forget();
  return (await run.log.chain()).map(({ record }) => record).reverse();
};

/** Kills the process of the leader once it stands at this point; resolves with the position of the log then. */
async function killAt(
  run: StartedRun,
  point: FaultPoint,
  process: string,
  facts: Record<string, string>,
): Promise<number> {
  const id = `${point}-${run.runId}-${process}`;
  injector.arm({ id, point, process, action: 'stand', facts });
  const { identity } = await injector.stands(id, AbortSignal.timeout(patienceMs));
  injector.disarm(id);
  if (identity === undefined) throw new Error(`${process} is gone`);
  const at = (await run.log.head())?.position ?? 0;
  await injector.kill([{ name: process, identity }]);
  return at;
}

describe('a run whose standby has other bits', () => {
  it.each([
    ['in the middle of an update', 'write.step', {}],
    ['before the result of an update is written', 'result.before', { stage: 'update' }],
    ['after the result of an update is written', 'result.after', { stage: 'update' }],
    ['while it makes a batch', 'result.before', { stage: 'advantage' }],
  ] as const)('goes on with the state of the standby when the leader is killed %s', async (_, point, facts) => {
    const run = await loop.start(recipe);
    await loop.said(run, /the last bits of its standby differ/);
    const { leader, standby } = await trainersOf(run);
    const before = await restored(run, standby);
    const at = await killAt(run, point, leader, facts);
    await loop.passes(run, Math.min(at + 3, iterations));
    expect(await restored(run, standby)).toEqual(before);
    await loop.reaches(run, 'completed');
    const [first, second, ...others] = await terms(run);
    expect(others).toEqual([]);
    expect(first).toMatchObject({ reason: 'start' });
    expect(second).toMatchObject({ reason: 'standby', standby: { result: expect.stringMatching(/^update-/) } });
    const begin = second?.parent?.position ?? 0;
    expect(begin).toBeGreaterThanOrEqual(at);
    const state = begin === 0 ? undefined : (await run.log.iteration(begin)).update.record.stateDigest;
    expect(second?.startState).not.toBe(state);
  });

  it('ends when the standby that leads is lost, too, before its state is saved', async () => {
    const run = await loop.start(recipe);
    await loop.said(run, /the last bits of its standby differ/);
    const { leader, standby } = await trainersOf(run);
    await kill(loop.process(leader));
    await loop.said(run, /its standby leads, with a state/);
    await kill(loop.process(standby));
    await loop.reaches(run, 'completed');
    const reasons = (await terms(run)).map(({ reason }) => reason);
    expect(reasons.slice(1).every((reason) => ['standby', 'replay'].includes(reason))).toBe(true);
  });

  it('has a whole ledger, with a critic and validations, whoever is killed again and again', async () => {
    const more: Tree = {
      algorithm: { adv_estimator: 'gae' },
      data: { val_files: loop.validationFile },
      trainer: { test_freq: 2 },
    };
    const run = await loop.start(mergeTrees(recipe, more));
    for (let k = 3; k + 3 < iterations; k += 4) {
      await loop.passes(run, k);
      const { leader } = await trainersOf(run);
      await kill(loop.process(leader));
    }
    await loop.reaches(run, 'completed');
    expect((await terms(run)).length).toBeGreaterThan(1);
  });
});
