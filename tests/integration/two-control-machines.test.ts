// @module-tag long
/** Two control machines of one stack (tests/two-control-machines.ts), with a folder as their store. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { strangers } from '../../infra/stack/adoption.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { ensureStack, stackName, stopStack } from '../../infra/stack/index.ts';
import { instanceName } from '../../infra/stack/identity.ts';
import { runningWorkflow } from '../../infra/temporal/run-workflow.ts';
import { longRecipe, TwoControlMachines, vanish } from '../two-control-machines.ts';

const machines = new TwoControlMachines();
const { loop, here, there } = machines;
beforeAll(() => machines.up());
afterAll(() => machines.remove());

describe('two control machines of one stack (seed 42)', () => {
  let undisturbed: string[];

  it('have one name and different instances, and a run of one is shown, stopped and resumed by the other', async () => {
    expect([stackName(machines.first.home), stackName(loop.home)]).toEqual(['team', 'team']);
    expect(instanceName(machines.first.home)).not.toBe(instanceName(loop.home));
    const run = await machines.startedThere('shared');
    expect(await drivenRuns(loop.home).drives({ runId: run.runId, store: run.log.store.url })).toBe(true);
    await loop.passes(run, 1);
    await here('stop', run.runId, '--wait');
    expect((await run.log.status.newest())?.state).toBe('stopped');
    const status = (await here('status', run.runId, '--json')).json<{ foreign?: boolean; workers: object[] }>();
    expect(status.foreign).toBeUndefined();
    expect(status.workers).toHaveLength(8); // of both machines
    expect((await here('ls', '--json')).json<{ runId: string }[]>().map(({ runId }) => runId)).toContain(run.runId);
    await here('resume', run.runId, '--wait');
    expect((await run.log.status.newest())?.state).toBe('completed');
    expect((await run.log.newestTerm())?.record).toMatchObject({ owner: 'team', term: 1 });
    undisturbed = await loop.states(run);
    // Two control processes hear each line of the log, and one of them stores it.
    await loop.said(run, /iteration 2, /);
    expect((await loop.lines(run)).filter((line) => line.includes('iteration 2, '))).toHaveLength(1);
  });

  it('a run that one has cancelled goes on from an iteration, whichever control process gets its work', async () => {
    const run = await machines.startedThere('cancelled');
    await loop.passes(run, 2);
    await here('cancel', run.runId, '--yes');
    await loop.reaches(run, 'cancelled');
    await there('resume', run.runId, '--from', '1', '--accept', '--wait');
    expect((await run.log.status.newest())?.state).toBe('completed');
    expect(await loop.states(run)).toEqual(undisturbed);
  });

  it('when one vanishes with all its processes, its run goes on at the other and ends with the same bits', async () => {
    const run = await machines.startedThere('vanished');
    await loop.passes(run, 2);
    await vanish(machines.first.home);
    expect(strangers(machines.first.home, [])).toEqual([]);
    expect((await run.log.status.newest())?.state).toBe('running');
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    expect(strangers(machines.first.home, [])).toEqual([]);
    await loop.until(run, 'no note of it', async () => {
      const notes = await loop.store.list(keys.drivenRuns('team'));
      return notes.length === 0;
    });
  });

  it('the machine that vanished comes back as a part of the stack', async () => {
    await ensureStack({ home: machines.first.home });
    const run = await loop.start(longRecipe);
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    await stopStack(machines.first.home);
  });

  it('a machine with another key is another stack: it is refused, unless it takes the name over', async () => {
    const run = await loop.start(longRecipe);
    await loop.passes(run, 2);
    await here('pause', run.runId);
    await loop.reaches(run, 'paused');
    machines.writeStackFile(machines.first.home, { secret: 'decade00'.repeat(8), namespace: machines.rival });
    await expect(there('up', '--workers', '0')).rejects.toMatchObject({
      code: 'Conflict',
      message: expect.stringContaining('another stack has the name team'),
      hint: expect.stringContaining('petrel up --take-over'),
    });
    await there('up', '--workers', '0', '--take-over');
    await loop.said(run, /this stack stops driving this run: \S+ has taken the name team/);
    expect(await runningWorkflow(loop.client, run.runId)).toBeUndefined();
    await expect(here('resume', run.runId)).rejects.toMatchObject({
      code: 'Conflict',
      message: expect.stringContaining('another stack has the name team'),
    });
    expect(await drivenRuns(machines.first.home).all()).toEqual([]); // the new stack drives what its user resumes
    await stopStack(machines.first.home);
    await here('up', '--take-over');
    await here('resume', run.runId, '--wait');
    expect(await loop.states(run)).toEqual(undisturbed);
  });
});
