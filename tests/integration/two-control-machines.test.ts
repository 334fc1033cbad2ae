/**
 * Two control machines of one stack: two homes with one stack.yaml, a cluster of three NATS servers and a Temporal server of
 * others, and one store. Each machine has a supervisor, a control process and workers of its own.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { strangers } from '../../infra/stack/adoption.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { chooseStack, ensureStack, readStack, stackName, stopStack } from '../../infra/stack/index.ts';
import { instanceName } from '../../infra/stack/identity.ts';
import { signalProcess, waitForExit } from '../../infra/stack/process.ts';
import { openStore } from '../../infra/store/open.ts';
import { RunLog } from '../../infra/store/run-log.ts';
import { connectTemporalClient } from '../../infra/temporal/connection.ts';
import { runningWorkflow } from '../../infra/temporal/run-workflow.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest, separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { startNatsCluster } from '../nats-cluster.ts';
import type { NatsCluster } from '../nats-cluster.ts';
import { startTemporal, temporaryHome } from '../servers.ts';

const place = temporaryHome();
const storeFolder = join(place.home, 'runs');
const first = temporaryHome();
/** Its loop looks at runs and stops the stack in the end. */
const loop = new LoopUnderTest(storeFolder);
const key = 'c0ffee00'.repeat(8);
const rival = 'rival';
let cluster: NatsCluster;
let temporal: Awaited<ReturnType<typeof startTemporal>>;

function stackFile(home: string, { secret = key, namespace = 'default' } = {}): void {
  writeFileSync(join(home, 'stack.key'), `${secret}\n`);
  writeFileSync(
    join(home, 'stack.yaml'),
    `name: team
store: ${storeFolder}
key: stack.key
temporal: { address: "${temporal.temporal.address}", namespace: ${namespace} }
nats:
  urls: [${cluster.urls.map((url) => `"${url}"`).join(', ')}]
  credentials: ${cluster.credentials}
  system_credentials: ${cluster.systemCredentials}
`,
  );
}

/** SIGKILL for the supervisor and every process that it and its children have started, as when the machine vanishes. */
async function vanish(home: string): Promise<void> {
  const { pid, startTime } = readStack(home) ?? {};
  if (pid === undefined || startTime === undefined) throw new Error(`no stack runs in ${home}`);
  // Each process of a stack starts a dead supervisor again, so they are killed until none is left.
  signalProcess({ pid, startTime }, 'SIGKILL');
  await waitForExit({ pid, startTime }, 5_000);
  for (let left = strangers(home, []); left.length > 0; left = strangers(home, [])) {
    for (const one of left) signalProcess(one, 'SIGKILL');
    await Promise.all(left.map((one) => waitForExit(one, 5_000)));
  }
}

beforeAll(async () => {
  cluster = await startNatsCluster(join(place.home, 'cluster'));
  temporal = await startTemporal(join(place.home, 'temporal'));
  const client = await connectTemporalClient(temporal);
  const workflowExecutionRetentionPeriod = { seconds: 86_400 as never };
  await client.workflowService.registerNamespace({ namespace: rival, workflowExecutionRetentionPeriod });
  await client.connection.close();
  for (const home of [first.home, loop.home]) {
    stackFile(home);
    await chooseStack(home);
  }
  await loop.up(separatePools);
  await ensureStack({ home: first.home, workers: separatePools });
});
afterAll(async () => {
  await stopStack(first.home);
  await loop.remove();
  await Promise.all([cluster?.stop(), temporal?.stop()]);
  first.remove();
  place.remove();
});

const there = (...words: string[]) => runWords(first.home, words);
const here = (...words: string[]) => runWords(loop.home, words);
/** Long enough for a command in its middle. */
const recipe = {
  actor: { ppo_mini_batch_size: 2, ppo_epochs: 20 },
  trainer: { total_training_steps: 10, save_freq: 2 },
};

/** Started by a command of the first machine. */
async function startedThere(name: string): Promise<StartedRun> {
  const { runId } = (await there('run', loop.recipeFile(name, recipe), '--detach', '--json')).json<{ runId: string }>();
  const run = { runId, log: new RunLog(await openStore(storeFolder), runId) };
  loop.runs.add(run);
  return run;
}

describe('two control machines of one stack (seed 42)', () => {
  let undisturbed: string[];

  it('have one name and different instances, and a run of one is shown, stopped and resumed by the other', async () => {
    expect([stackName(first.home), stackName(loop.home)]).toEqual(['team', 'team']);
    expect(instanceName(first.home)).not.toBe(instanceName(loop.home));
    const run = await startedThere('shared');
    expect(await drivenRuns(loop.home).drives({ runId: run.runId, store: run.log.store.url })).toBe(true);
    await loop.passes(run, 1);
    await here('stop', run.runId, '--wait');
    expect((await run.log.status())?.state).toBe('stopped');
    const status = (await here('status', run.runId, '--json')).json<{ foreign?: boolean; workers: object[] }>();
    expect(status.foreign).toBeUndefined();
    expect(status.workers).toHaveLength(8); // of both machines
    expect((await here('ls', '--json')).json<{ runId: string }[]>().map(({ runId }) => runId)).toContain(run.runId);
    await here('resume', run.runId, '--wait');
    expect((await run.log.status())?.state).toBe('completed');
    expect((await run.log.newestTerm())?.record).toMatchObject({ owner: 'team', term: 1 });
    undisturbed = await loop.states(run);
    // Two control processes hear each line of the log, and one of them stores it.
    await loop.said(run, /iteration 2, /);
    expect((await loop.lines(run)).filter((line) => line.includes('iteration 2, '))).toHaveLength(1);
  });

  it('a run that one has cancelled goes on from an iteration, whichever control process gets its work', async () => {
    const run = await startedThere('cancelled');
    await loop.passes(run, 2);
    await here('cancel', run.runId, '--yes');
    await loop.reaches(run, 'cancelled');
    await there('resume', run.runId, '--from', '1', '--accept', '--wait');
    expect((await run.log.status())?.state).toBe('completed');
    expect(await loop.states(run)).toEqual(undisturbed);
  });

  it('when one vanishes with all its processes, its run goes on at the other and ends with the same bits', async () => {
    const run = await startedThere('vanished');
    await loop.passes(run, 2);
    await vanish(first.home);
    expect(strangers(first.home, [])).toEqual([]);
    expect((await run.log.status())?.state).toBe('running');
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    expect(strangers(first.home, [])).toEqual([]);
    await loop.until(run, 'no note of it', async () => {
      const notes = await loop.store.list(keys.drivenRuns('team'));
      return notes.length === 0;
    });
  });

  it('the machine that vanished comes back as a part of the stack', async () => {
    await ensureStack({ home: first.home });
    const run = await loop.start(recipe);
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    await stopStack(first.home);
  });

  it('a machine with another key is another stack: it is refused, unless it takes the name over', async () => {
    const run = await loop.start(recipe);
    await loop.passes(run, 2);
    await here('pause', run.runId);
    await loop.reaches(run, 'paused');
    stackFile(first.home, { secret: 'decade00'.repeat(8), namespace: rival });
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
    expect(await drivenRuns(first.home).all()).toEqual([]); // the new stack drives what its user resumes
    await stopStack(first.home);
    await here('up', '--take-over');
    await here('resume', run.runId, '--wait');
    expect(await loop.states(run)).toEqual(undisturbed);
  });
});
