/** pause, stop, cancel, resume and rm with the stack down, and their rules against a driver that is given. */
import { afterAll, describe, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import { appendStatus } from '../../log/run/status.ts';
import { cliHome } from '../../tests/cli.ts';
import { buildRun } from '../../tests/run-builder.ts';
import { untilEnded } from '../../api/runs/driver.ts';
import type { RunDriver } from '../../api/runs/driver.ts';
import type { FoundRun } from '../../api/index.ts';
import { waitForEnd } from '../../api/runs/wait.ts';
import { recordDesiredState, resume, tellWorkflow } from '../../api/runs/desired-state.ts';

const cli = cliHome();
let n = 0;
afterAll(() => cli.remove());

async function fresh(status: Partial<StatusEntry> = {}, owner = 'test'): Promise<FoundRun> {
  const { runId, log } = await buildRun(await cli.store(), {
    name: `toy-${n++}`,
    done: 1,
    checkpoints: [1],
    status,
    owner,
  });
  return { runId, log, record: await log.run() };
}

/** Remembers what it was told. */
function fakeDriver(workflow: 'running' | 'ended'): RunDriver & { readonly told: string[] } {
  const told: string[] = [];
  return {
    told,
    get stack(): never {
      throw new Error('there is none');
    },
    workflow: async () => workflow,
    signal: async (desired) => {
      if (workflow === 'running') told.push(`signal ${desired}`);
      return workflow === 'running';
    },
    noteToStart: async () => void told.push('note'),
    start: async (ending) => void told.push(ending ? 'start after its end' : 'start'),
    end: async () => {},
    ended: () => new Promise(() => {}),
    close: async () => {},
  };
}

describe('with the stack down', () => {
  it.each(['pause', 'stop'] as const)('%s is noted in the store', async (what) => {
    const { runId, log } = await fresh();
    const { code, out } = await cli.petrel(what, runId);
    expect(code).toBe(0);
    expect(out).toContain('petrel up');
    expect(await log.status.newest()).toMatchObject({ wish: what, state: 'running' });
    expect(
      (await cli.petrel('ls', '--json')).json<{ runId: string; wish: string }[]>().find((one) => one.runId === runId)
        ?.wish,
    ).toBe(what);
  });

  it('cancel asks for confirmation, and needs --yes without a terminal', async () => {
    const { runId, log } = await fresh();
    await expect(cli.petrel('cancel', runId)).rejects.toMatchObject({
      code: 'InvalidInput',
      hint: 'confirm with --yes',
    });
    expect((await log.status.newest())?.wish).toBe('run');
    expect((await cli.petrel('cancel', runId, '-y', '--json')).json()).toMatchObject({
      wish: 'cancel',
      met: 'stack-down',
    });
    expect((await log.status.newest())?.wish).toBe('cancel');
  });

  it.each(['completed', 'stopped', 'failed', 'cancelled'] as const)(
    'a run that is %s cannot be paused or cancelled',
    async (state) => {
      const { runId } = await fresh({ state });
      await expect(cli.petrel('pause', runId)).rejects.toMatchObject({
        code: 'Conflict',
        message: expect.stringContaining(state),
      });
      await expect(cli.petrel('cancel', runId, '-y')).rejects.toMatchObject({ code: 'Conflict' });
    },
  );

  it('resume explains what cannot go on, and how it could', async () => {
    await expect(cli.petrel('resume', (await fresh({ state: 'completed' })).runId)).rejects.toMatchObject({
      code: 'Conflict',
      message: expect.stringContaining('completed'),
      hint: expect.stringContaining('total_training_steps'),
    });
    await expect(cli.petrel('resume', (await fresh({ state: 'cancelled' })).runId)).rejects.toMatchObject({
      code: 'Conflict',
      hint: expect.stringContaining('--from'),
    });
  });

  it('resume --from lists the abandoned iterations, and needs --accept without a terminal', async () => {
    const { runId, log } = await fresh({ state: 'stopped' });
    await expect(cli.petrel('resume', runId, '--from', '2')).rejects.toMatchObject({
      code: 'NotFound',
      hint: '--from takes 0 to 1',
    });
    await expect(cli.petrel('resume', runId, '--skip-draws')).rejects.toMatchObject({ code: 'InvalidInput' });
    await expect(cli.petrel('resume', runId, '--from', '0')).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringContaining('iteration 1 no longer counts'),
      hint: 'confirm with --accept',
    });
    expect((await log.head())?.term).toBe(1);
  });

  it('resume wants --accept to take a run from another stack that may be at work', async () => {
    await expect(cli.petrel('resume', (await fresh({}, 'laptop-3fa21c')).runId)).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringContaining('laptop-3fa21c drives it (running'),
      hint: 'confirm with --accept',
    });
  });
});

describe('of a run that another stack drives', () => {
  it.each(['pause', 'stop', 'cancel'] as const)('%s is noted for its owner, who is named', async (what) => {
    const { runId, log } = await fresh({}, 'laptop-3fa21c');
    const { out } = await cli.petrel(what, runId, ...(what === 'cancel' ? ['-y'] : []));
    expect(out).toContain('laptop-3fa21c drives it');
    expect(await log.status.newest()).toMatchObject({ wish: what, state: 'running' });
  });

  it('status tells who drives it', async () => {
    const { runId } = await fresh({}, 'laptop-3fa21c');
    expect((await cli.petrel('status', runId)).out).toMatch(/controlled +by another stack: laptop-3fa21c/);
    expect((await cli.petrel('status', runId, '--json')).json()).toMatchObject({ owner: 'laptop-3fa21c' });
    expect((await cli.petrel('status', (await fresh()).runId)).out).toMatch(/controlled +from this machine/);
  });
});

describe('a desired state', () => {
  it('is recorded in the store first, then told to the workflow', async () => {
    const run = await fresh();
    const driver = fakeDriver('running');
    await recordDesiredState(run, 'stop', new Date());
    const { met } = await tellWorkflow(run, 'stop', driver, 'test');
    expect([met, driver.told, (await run.log.status.newest())?.wish]).toEqual(['told', ['signal stop'], 'stop']);
  });

  it('of a run without a workflow cannot be told', async () => {
    const driver = fakeDriver('ended');
    expect((await tellWorkflow(await fresh(), 'pause', driver, 'test')).met).toBe('nobody');
    expect(driver.told).toEqual([]);
  });
});

describe('resume', () => {
  it('queues a run that had ended, and waits for its old workflow', async () => {
    const run = await fresh({ state: 'failed', wish: 'stop', reason: { code: 'X', message: 'x' } });
    const driver = fakeDriver('ended');
    await resume(run, driver, new Date());
    expect(driver.told).toEqual(['note', 'start after its end']);
    const status = await run.log.status.newest();
    expect(status).toMatchObject({ state: 'queued', wish: 'run' });
    expect(status).not.toHaveProperty('reason');
  });

  it('joins the workflow of a paused run and keeps its reason until it goes on', async () => {
    const run = await fresh({ state: 'paused', wish: 'pause', reason: { code: 'JobConvicted', message: 'x' } });
    const driver = fakeDriver('running');
    await resume(run, driver, new Date());
    expect(driver.told).toEqual(['start', 'signal run']);
    expect(await run.log.status.newest()).toMatchObject({
      state: 'paused',
      wish: 'run',
      reason: { code: 'JobConvicted' },
    });
  });
});

describe('waiting for the end', () => {
  it('passes over what was recorded before, and ends with the state that comes', async () => {
    const run = await fresh({ state: 'paused' });
    const before = await run.log.status.newest();
    if (before === undefined) throw new Error('it has a status');
    const waiting = waitForEnd(run.log, before, new Promise(() => {}));
    await appendStatus(run.log, { state: 'running' }, new Date());
    await appendStatus(run.log, { state: 'stopped' }, new Date());
    expect(await waiting).toBe('stopped');
  });

  it('gives up on a workflow that ended without a word', async () => {
    const run = await fresh();
    const before = await run.log.status.newest();
    if (before === undefined) throw new Error('it has a status');
    expect(await waitForEnd(run.log, before, Promise.resolve())).toBeUndefined();
  });

  it('does not take a workflow that is started again for one that has ended', async () => {
    const answers = [
      ...Array(7).fill('ended'),
      'running',
      ...Array(7).fill('ended'),
      'unreachable',
      ...Array(8).fill('ended'),
    ];
    const workflow = async () => {
      const answer = answers.shift();
      if (answer === 'unreachable') throw new Error('the server is away');
      return answer;
    };
    await untilEnded(workflow, () => false, 0);
    expect(answers).toEqual([]);
  });
});

describe('rm', () => {
  it('deletes only what has ended', async () => {
    const { runId } = await fresh();
    await expect(cli.petrel('rm', runId, '-y')).rejects.toMatchObject({
      code: 'Conflict',
      hint: expect.stringContaining('petrel stop'),
    });
  });

  it('leaves the run record and a tombstone, and says what was lost', async () => {
    const { runId, log } = await fresh({ state: 'stopped' });
    await expect(cli.petrel('rm', runId)).rejects.toMatchObject({ code: 'InvalidInput' });
    const { out } = await cli.petrel('rm', runId, '-y');
    expect(out).toMatch(/deleted .*: 1 checkpoint, 1 iteration, [\d.]+ KiB/);
    expect(await log.store.list(keys.all(runId))).toEqual([keys.tombstone(runId), keys.run(runId)]);
    expect(await log.store.children(keys.all(runId))).toEqual(['removed.json', 'run.json']);
    await expect(cli.petrel('status', runId)).rejects.toMatchObject({
      code: 'NotFound',
      message: expect.stringContaining('deleted'),
    });
    await expect(cli.petrel('status', runId.replace(/(-[^-]+){3}$/, ''))).rejects.toMatchObject({
      code: 'NotFound',
      hint: 'petrel ls lists the runs',
    });
    expect((await cli.petrel('ls', '--all')).out).not.toContain(runId);
  });
});
