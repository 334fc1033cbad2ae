// @module-tag long
/** A run whose critic is trained by jobs of its own: wherever its trainers are, it is the run of one trainer. */
import { beforeAll, describe, expect, it } from 'vitest';
import { verifyCheckpoints } from '../../api/checkpoints/verify.ts';
import { mergeTrees } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import type { ArmedFault } from '../../log/faults/index.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { sweepStore } from '../../log/retention/sweep.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import { needRecord } from '../../log/objects/records.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { runWords } from '../cli.ts';
import { essences as essencesOf, killedRun } from '../killed-run.ts';
import { onePool } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

const twoTrainers: readonly WorkerPool[] = [
  { name: 'train', count: 2, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: 1, roles: ['rollout', 'reward'], threads: 1 },
];

const iterations = 5;
const ppo: Tree = {
  actor: { ppo_mini_batch_size: 2 },
  algorithm: { adv_estimator: 'gae', lam: 0.95 },
  critic: { optim: { lr: 0.01, weight_decay: 0 } },
  trainer: { total_training_steps: iterations, save_freq: 2 },
};
const divided = mergeTrees(ppo, { critic: { own_trainer: true } });

const { loop, injector } = loopWithFaults();
let undivided: StartedRun;
beforeAll(async () => {
  await loop.up(onePool);
  undivided = await loop.completed(ppo);
});

const essences = (run: StartedRun) => essencesOf(loop, run);

/** Which processes have done a stage of the run, by the components of the job. */
async function writersOf({ runId }: StartedRun, stage: string): Promise<Record<string, string[]>> {
  const folder = keys.results(runId);
  const names = (await loop.store.children(folder)).filter((name) => name.startsWith(`${stage}-`));
  const found: Record<string, Set<string>> = {};
  for (const name of names) {
    const { output, writer } = (await needRecord(loop.store, folder + name, resultRecord)).record;
    (found[Object.keys(output['components'] ?? { critic: 0 }).join(' ')] ??= new Set()).add(writer.process);
  }
  return Object.fromEntries(Object.entries(found).map(([components, writers]) => [components, [...writers]]));
}

/** The blob of values that a batch was made with. */
async function valuesOf({ runId }: StartedRun, results: readonly string[]): Promise<string> {
  const key = keys.result(runId, results.at(-1) ?? '');
  return String((await needRecord(loop.store, key, resultRecord)).record.output['values']);
}

const isThere = async ({ runId }: StartedRun, blob: string) =>
  (await loop.store.head(keys.blob(runId, blob))) !== undefined;

describe('a run whose critic has jobs of its own (seed 42)', () => {
  it('ends in the same bits on one trainer, and saves both in one checkpoint', async () => {
    const run = await loop.completed(divided);
    expect(await essences(run)).toEqual(await essences(undivided));
    expect(await writersOf(run, 'update')).toEqual({ actor: ['local-1'], critic: ['local-1'] });
    const iterationsOf = async ({ log }: StartedRun) =>
      (await log.checkpoints.all()).map(({ record }) => [record.iteration, Object.keys(record.components)]);
    expect(await iterationsOf(run)).toEqual(await iterationsOf(undivided));
    const verdicts = await verifyCheckpoints(run.log, undefined, () => {});
    expect(verdicts.map(({ ok, problem }) => problem ?? ok)).toEqual([true, true, true]);
  });

  it.each<readonly [string, Tree]>([
    [
      'trains only the critic at first',
      { ...ppo, trainer: { total_training_steps: 4, save_freq: 2, critic_warmup: 3 } },
    ],
    [
      'has a critic whose values nobody reads',
      { ...ppo, algorithm: {}, critic: { enable: true, optim: { lr: 0.01 } } },
    ],
  ])('ends in the same bits and metrics where it %s', async (_, recipe) => {
    const whole = await loop.completed(recipe);
    const run = await loop.completed(mergeTrees(recipe, { critic: { own_trainer: true } }));
    expect(await essences(run)).toEqual(await essences(whole));
    const stages = (await loop.store.children(keys.results(run.runId))).map((name) => name.split('-')[0]);
    expect(stages.includes('values')).toBe(recipe === ppo || 'critic_warmup' in (recipe['trainer'] as Tree));
  });

  it('ends in the same bits when its only trainer is killed between the steps of the critic', async () => {
    const run = await killedRun(loop, injector, divided, {
      point: 'write.step',
      facts: { iteration: 4, step: 0, component: 'critic' },
    });
    expect(await essences(run)).toEqual(await essences(undivided));
  });
});

describe('on two trainers', () => {
  beforeAll(async () => void (await loop.up(twoTrainers)));

  it('ends in the same bits, and each of them has one of the models', async () => {
    const run = await loop.completed(divided);
    expect(await essences(run)).toEqual(await essences(undivided));
    const { actor, critic } = await writersOf(run, 'update');
    expect([actor, critic]).toEqual([[expect.stringContaining('train')], [expect.stringContaining('train')]]);
    expect(actor).not.toEqual(critic);
    expect(await writersOf(run, 'values')).toEqual({ critic });
  });

  it.each<readonly [string, ArmedFault['point'], ArmedFault['facts']]>([
    ['the trainer of the critic, between its steps', 'write.step', { iteration: 4, step: 0, component: 'critic' }],
    ['that of the critic, before it has made the values', 'result.before', { stage: 'values', iteration: 3 }],
    [
      'that of the policy, after its result and before the commit',
      'result.after',
      { stage: 'update', iteration: 3, components: 'actor' },
    ],
    ['that of the critic, in the middle of the checkpoint', 'checkpoint.shard', { iteration: 4, component: 'critic' }],
    ['the control process, before the manifest', 'checkpoint.manifest.before', { iteration: 4 }],
  ])('ends in the same bits when a kill ends %s', async (_, point, facts) => {
    const run = await killedRun(loop, injector, divided, { point, facts });
    expect(await essences(run)).toEqual(await essences(undivided));
    expect((await run.log.checkpoints.names()).map(({ iteration }) => iteration)).toEqual([5, 4, 2]);
  });

  it('ends in the same bits when the trainer of the critic hangs for ever, and the other one takes the critic', async () => {
    injector.arm({
      id: 'hang',
      point: 'write.step',
      facts: { iteration: 2, step: 0, component: 'critic' },
      action: 'stand',
    });
    const run = await loop.start(divided);
    const { process, identity } = await injector.stands('hang', AbortSignal.timeout(patienceMs));
    injector.disarm('hang');
    await loop.reaches(run, 'completed');
    const { critic } = await writersOf(run, 'update');
    expect(critic?.filter((name) => name !== process)).toHaveLength(1);
    if (identity !== undefined) injector.thaw(identity);
    expect(await essences(run)).toEqual(await essences(undivided));
  });

  it('gives the critic to the next process of its trainer after a kill', async () => {
    const long = mergeTrees(divided, { trainer: { total_training_steps: 200, save_freq: 50 } });
    injector.arm({
      id: 'once',
      point: 'write.step',
      facts: { iteration: 2, step: 0, component: 'critic' },
      action: 'stand',
    });
    const run = await loop.start(long);
    const { process, identity } = await injector.stands('once', AbortSignal.timeout(patienceMs));
    injector.disarm('once');
    if (identity !== undefined) await injector.kill([{ name: process, identity }]);
    await loop.until(run, 'two trainers again', async () => {
      const workers = await listWorkers(loop.nc);
      const trained = workers.flatMap(({ lease, trains }) => (lease === run.runId && trains ? [trains.join(' ')] : []));
      return trained.sort().join(', ') === 'actor, critic';
    });
    await loop.passes(run, ((await run.log.head())?.position ?? 0) + 2);
    await loop.tell(run, 'stop');
    await loop.reaches(run, 'stopped');
    expect((await run.log.checkpoints.names())[0]?.iteration).toBe((await run.log.head())?.position);
  });

  it('continues by itself after kills where it need not be reproducible', async () => {
    const free = mergeTrees(divided, { deterministic: false });
    const at = { point: 'write.step', facts: { iteration: 4, step: 0, component: 'critic' } } as const;
    const run = await killedRun(loop, injector, free, at);
    expect(await loop.iterations(run)).toHaveLength(iterations);
  });

  it('keeps what its checkpoints need, and no values of older batches', async () => {
    const run = await loop.completed(mergeTrees(divided, { trainer: { max_actor_ckpt_to_keep: 2 } }));
    for (let pass = 0; pass < 2; pass++) {
      const { runs } = await sweepStore(loop.store, { now: new Date(), graceMs: 0 });
      expect(runs.flatMap(({ problem }) => problem ?? [])).toEqual([]);
    }
    expect((await run.log.checkpoints.names()).map(({ iteration }) => iteration)).toEqual([5, 4]);
    const verdicts = await verifyCheckpoints(run.log, undefined, () => {});
    expect(verdicts.map(({ ok, problem }) => problem ?? ok)).toEqual([true, true]);
    const made = await loop.iterations(run);
    const left = await Promise.all(made.map(async ({ batch }) => isThere(run, await valuesOf(run, batch.results))));
    expect(left).toEqual([false, false, false, false, true]);
  });

  it('ends in the same bits when both trainers are killed between their steps', async () => {
    for (const component of ['actor', 'critic'])
      injector.arm({
        id: component,
        point: 'write.step',
        facts: { iteration: 4, step: 0, component },
        action: 'stand',
      });
    const run = await loop.start(divided);
    const standing = await Promise.all(
      ['actor', 'critic'].map((id) => injector.stands(id, AbortSignal.timeout(patienceMs))),
    );
    injector.disarmAll();
    expect(new Set(standing.map(({ process }) => process)).size).toBe(2);
    for (const { process, identity } of standing) if (identity) await injector.kill([{ name: process, identity }]);
    await loop.reaches(run, 'completed');
    expect(await essences(run)).toEqual(await essences(undivided));
  });

  it('continues from its checkpoint, and in a fork, which needs none of its objects', async () => {
    const run = await loop.completed(divided);
    const states = await loop.states(run);
    for (const name of ['train-1', 'train-2']) await kill(loop.process(name));
    await runWords(loop.home, ['resume', run.runId, '--from', '3', '--accept', '--wait']);
    expect(await loop.states(run)).toEqual(states);
    await loop.said(run, /loaded checkpoint 2/);
    await loop.said(run, /replayed iteration 3/);
    const forked = await runWords(loop.home, ['fork', run.runId, '--from', '3', '--wait', '--json']);
    const { runId } = forked.json<{ runId: string }>();
    const fork = { runId, log: new RunLog(loop.store, runId) };
    loop.runs.add(fork);
    expect(await loop.states(fork)).toEqual(states.slice(3));
    expect((await fork.log.checkpoints.names()).map(({ iteration }) => iteration)).toEqual([5, 4, 3]);
    expect(await loop.store.children(keys.pins(run.runId))).toEqual([]);
    await runWords(loop.home, ['rm', run.runId, '-y']);
    for (const name of ['train-1', 'train-2']) await kill(loop.process(name));
    await runWords(loop.home, ['resume', runId, '--from', '3', '--accept', '--wait']);
    expect(await loop.states(fork)).toEqual(states.slice(3));
    await loop.said(fork, /loaded checkpoint 3/);
  });
});
