// @module-tag long
/** Two stacks, each with a separate home, and one run: the run is moved or taken over, and a stack returns late. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyLedger } from '../../api/ledger/verify.ts';
import { builtProgram } from '../../infra/home.ts';
import { stackName, stopStack } from '../../infra/stack/index.ts';
import { signalProcess } from '../../infra/stack/process.ts';
import { openStore } from '../../infra/store/open.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { temporaryHome } from '../servers.ts';

const iterations = 6;
const recipe = {
  actor: { ppo_mini_batch_size: 2, ppo_epochs: 20 },
  trainer: { total_training_steps: iterations, save_freq: 2 },
};

const loop = new LoopUnderTest();
const other = temporaryHome();
let undisturbed: string[];
beforeAll(async () => {
  await loop.up();
  const run = await loop.start(recipe);
  await loop.reaches(run, 'completed');
  undisturbed = await loop.states(run);
});
afterAll(async () => {
  await stopStack(other.home);
  other.remove();
  await loop.remove();
});

const here = (...words: string[]) => runWords(loop.home, words);
const there = (...words: string[]) => runWords(other.home, words);

async function begun(): Promise<StartedRun> {
  const run = await loop.start(recipe);
  await loop.passes(run, 2);
  return run;
}

async function expectProven(run: StartedRun): Promise<void> {
  expect((await verifyLedger(run.log.store, run.runId, { deep: true })).faults).toEqual([]);
  expect(await loop.states(run)).toEqual(undisturbed);
}

/** The run in a copy of the store that the first machine does not know. */
async function copied({ runId }: StartedRun, name: string): Promise<StartedRun> {
  const folder = join(other.home, name);
  cpSync(join(loop.home, 'store'), folder, { recursive: true });
  return { runId, log: new RunLog(await openStore(folder), runId) };
}

async function stopped(): Promise<StartedRun> {
  const run = await begun();
  await here('stop', run.runId, '--wait');
  return run;
}

describe('another machine (seed 42)', () => {
  it('that has only the store continues a stopped run to the same numbers', async () => {
    const run = await copied(await stopped(), 'only-the-store');
    const { out } = await there('resume', run.runId, '--store', run.log.store.url, '--wait', '--json');
    expect(JSON.parse(out)).toMatchObject({
      term: 2,
      state: 'completed',
      reason: `taken over from ${stackName(loop.home)}`,
    });
    expect((await run.log.newestTerm())?.record.owner).toBe(stackName(other.home));
    await expectProven(run);
    expect((await there('metrics', run.runId, '--json')).json()).toHaveLength(iterations);
  });
});

describe('a run that another stack drives (seed 42)', () => {
  it('is taken over with --accept; the first stack learns which stack has it, and no longer writes its state', async () => {
    const run = await begun();
    const store = run.log.store.url;
    // The first stack waits for its worker, so that it cannot complete the run before the other one takes it over.
    const worker = loop.process('local-1');
    signalProcess(worker, 'SIGSTOP');
    try {
      await expect(there('resume', run.runId, '--store', store)).rejects.toMatchObject({
        message: expect.stringContaining(`${stackName(loop.home)} drives it (running`),
        hint: 'confirm with --accept',
      });
      await there('resume', run.runId, '--store', store, '--accept', '--wait');
    } finally {
      signalProcess(worker, 'SIGCONT');
    }
    await expectProven(run);
    await expect(loop.ended(run)).rejects.toMatchObject({
      cause: { type: 'Fenced', message: expect.stringContaining(stackName(other.home)) },
    });
    expect(await loop.statuses(run)).not.toContain('failed');
    expect((await run.log.status.newest())?.state).toBe('completed');
    await loop.said(run, new RegExp(`${stackName(loop.home)} stops driving this run`));
  });

  it('while the first stack is disconnected: its late commits are refused', async () => {
    const run = await begun();
    const control = loop.process('control');
    signalProcess(control, 'SIGSTOP');
    try {
      await there('resume', run.runId, '--store', run.log.store.url, '--accept', '--wait');
    } finally {
      signalProcess(control, 'SIGCONT');
    }
    await expect(loop.ended(run)).rejects.toMatchObject({ cause: { type: 'Fenced' } });
    await expectProven(run);
    expect((await run.log.status.newest())?.state).toBe('completed');
  });

  it('can be taken back', async () => {
    const run = await stopped();
    await there('resume', run.runId, '--store', run.log.store.url);
    await loop.until(
      run,
      'term 2',
      async () => ((await run.log.head())?.position ?? 0) > 2 && (await run.log.newestTerm())?.record.term === 2,
    );
    await here('resume', run.runId, '--accept', '--wait');
    await expectProven(run);
    expect((await run.log.newestTerm())?.record.owner).toBe(stackName(loop.home));
  });
});

describe('rivals', () => {
  it('for one name get one run each; the name means the newest one', async () => {
    const runs = await Promise.all([loop.create({ name: 'same' }), loop.create({ name: 'same' })]);
    expect(new Set(runs.map(({ runId }) => runId)).size).toBe(2);
    const { runId } = (await here('status', 'same', '--json')).json<{ runId: string }>();
    expect(runs.map((run) => run.runId)).toContain(runId);
  });

  it('for the first term of a run: one opens it, and the other ends with the winner’s name', async () => {
    const run = await loop.create(recipe);
    // A resume that comes after the first term was opened asks before it takes the run over.
    const asked = (error: unknown) =>
      expect(error).toMatchObject({ message: expect.stringContaining(`${stackName(loop.home)} drives it`) });
    await Promise.all([loop.drive(run), there('resume', run.runId, '--store', run.log.store.url).catch(asked)]);
    await loop.reaches(run, 'completed');
    await expectProven(run);
    const owner = (await run.log.newestTerm())?.record.owner;
    expect([stackName(loop.home), stackName(other.home)]).toContain(owner);
    expect((await loop.statuses(run)).filter((status) => status === 'completed' || status === 'failed')).toEqual([
      'completed',
    ]);
  });

  it('for one home: a second supervisor reports the first one and exits', async () => {
    const second = spawn(process.execPath, [builtProgram('supervisor'), loop.home], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    second.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    expect(await once(second, 'close')).toEqual([0, null]);
    expect(said).toContain('another supervisor serves this home');
  });
});
