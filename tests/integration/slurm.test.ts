// @module-tag long
/** Workers as jobs of Slurm, by the files of examples/clusters/slurm: preempted, queued again and cancelled. */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import { packageRoot } from '../../infra/home.ts';
import { runWords } from '../cli.ts';
import { JoinedMachines } from '../joined-machines.ts';
import { essences } from '../killed-run.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';
import { slurmIsHere, SlurmUnderTest } from '../slurm.ts';

describe.skipIf(!slurmIsHere)('jobs of Slurm (apt install slurm-wlm; root)', () => {
  const loop = new LoopUnderTest();
  const machines = new JoinedMachines(loop);
  const folder = join(loop.home, 'submitted');
  let slurm: SlurmUnderTest;
  beforeAll(async () => {
    slurm = await SlurmUnderTest.start(4);
    await machines.up([{ name: 'local', count: 1, roles: ['reward'], threads: 1 }]);
    mkdirSync(folder);
    copyFileSync(join(packageRoot(), 'examples/clusters/slurm/workers.sbatch'), join(folder, 'workers.sbatch'));
    const program = join(folder, 'join-slurm.mjs');
    await runWords(loop.home, [
      'fleet',
      'token',
      '--pool',
      'slurm',
      '--roles',
      'trainer,rollout',
      '--program',
      program,
    ]);
  });
  afterAll(async () => {
    await slurm?.stop();
    await loop.remove();
  });

  /** Submits an array of so many jobs of one worker each. Resolves with their ids when they are there. */
  const workers = async (count: number): Promise<string[]> => {
    const words = ['--partition=spot', `--array=1-${count}`, '--cpus-per-task=1', 'workers.sbatch', 'join-slurm.mjs'];
    const array = slurm.submit(words, folder, {
      PETREL_SLURM_HOMES: join(loop.home, 'slurm-homes'),
      PETREL_GRACE: '20',
    });
    await areThere(count);
    return Array.from({ length: count }, (_, i) => `${array}_${i + 1}`);
  };
  const present = async () =>
    (await listWorkers(loop.nc)).filter(
      ({ instance, state }) => /^slurm-/.test(instance) && /^(ready|busy)$/.test(state),
    );
  const areThere = (count: number) =>
    expect.poll(async () => (await present()).length, { timeout: patienceMs }).toBe(count);
  /** A job that needs the whole node: every job of the partition `spot` must go. */
  const preempts = () => slurm.submit(['--partition=first', '--cpus-per-task=4', '--wrap=true'], folder);

  it('train and sample, are preempted and queued again, and the run ends in the same bits', async () => {
    const recipe = { trainer: { total_training_steps: 12, save_freq: 4 } };
    const [first = '', second = ''] = await workers(2);
    const undisturbed = await loop.completed(recipe);
    const run = await loop.start(recipe);
    await loop.passes(run, 3);
    await slurm.is(preempts(), 'COMPLETED');
    await slurm.is(first, 'PENDING');
    await slurm.is(second, 'PENDING');
    for (const id of [first, second]) await slurm.begin(id);
    await areThere(2);
    await loop.passes(run, 7);
    slurm.command('scancel', [first]);
    await loop.reaches(run, 'completed');
    await slurm.is(first, 'CANCELLED');
    const jobs = slurm.jobs().filter(({ id }) => id === first || id === second);
    expect(jobs.map(({ restarts }) => restarts > 0)).toEqual([true, true]);
    expect(await essences(loop, run)).toEqual(await essences(loop, undisturbed));
    slurm.command('scancel', [second]);
    await areThere(0);
  });

  it('that the stack sends away are not queued again', async () => {
    const [id] = await workers(1);
    await runWords(loop.home, ['fleet', 'revoke', 'slurm']);
    await expect
      .poll(() => slurm.jobs().find((job) => job.id === id)?.state, { timeout: patienceMs })
      .toMatch(/^(COMPLETED|FAILED)$/);
  });
});
