/**
 * Workflows that run during an upgrade of petrel continue with the new code, so the new code must make the decisions of
 * the old histories. `npm run record:histories` records a history of each kind of run as a new version. Stored
 * histories are never changed.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { faultsVariable } from '../../log/faults/index.ts';
import { stopStack } from '../../infra/stack/index.ts';
import { sweepStore } from '../../log/retention/sweep.ts';
import { builtFile } from '../../infra/home.ts';
import { payloadCodec } from '../../infra/temporal/payload-codec.ts';
import { taskQueue } from '../../core/wire/workflow.ts';
import { runWords } from '../cli.ts';
import { storedHistories, storeHistory } from '../history-files.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { SchedulesUnderTest, second, short } from '../schedules-under-test.ts';
import { kill } from '../stack-under-test.ts';

const version = process.env['PETREL_RECORD_HISTORIES'];
const advice = [
  'The workflow code decides otherwise than it did when this history was recorded: runs in progress would break on upgrade.',
  "Guard the change with patched('name') of @temporalio/workflow, so that old histories take the old way;",
  'once no run of that version can be in progress, delete its folder under tests/histories.',
].join('\n');

describe.skipIf(version !== undefined)('workflow histories of every version', () => {
  const histories = storedHistories();

  it('are there', () => expect(histories.length).toBeGreaterThanOrEqual(12));

  it.each(histories)('$name is replayed by the current workflows', async ({ name, history }) => {
    Runtime.install({ logger: new DefaultLogger('ERROR') });
    const code = readFileSync(builtFile('workflow-bundle.js'), 'utf8');
    await Worker.runReplayHistory({ workflowBundle: { code } }, history, name).catch((cause: unknown) => {
      throw new Error(`${name}: ${advice}`, { cause });
    });
  });

  it('would fail if the workflow made other decisions', async () => {
    Runtime.install({ logger: new DefaultLogger('ERROR') });
    const code = readFileSync(builtFile('workflow-bundle.js'), 'utf8').replaceAll(
      'stages.advantage(',
      'stages.evaluate(',
    );
    const rl = histories.find(({ name }) => name.endsWith('/rl'));
    await expect(Worker.runReplayHistory({ workflowBundle: { code } }, rl?.history, 'changed')).rejects.toThrow();
  });
});

describe.runIf(version !== undefined)(`recording histories as version ${version}`, () => {
  const loop = new LoopUnderTest();
  const faults = join(loop.home, 'faults');
  let injector: Injector;
  beforeAll(async () => {
    process.env[faultsVariable] = faults;
    injector = new Injector(loop.home, faults);
    await loop.up();
  });
  afterAll(async () => {
    injector.close();
    delete process.env[faultsVariable];
    await loop.remove();
  });

  async function record(name: string, run: Pick<StartedRun, 'runId'>, execution?: string): Promise<void> {
    const { events } = await loop.client.workflow.getHandle(run.runId, execution).fetchHistory();
    const codec = payloadCodec(loop.supervisor().temporal.payloadKey ?? '');
    await storeHistory(version ?? '', name, events ?? [], codec);
  }

  async function recordEnded(name: string, run: StartedRun): Promise<void> {
    await loop.ended(run).catch(() => undefined); // a failed run has a history too
    await record(name, run);
  }

  it('rl', async () => {
    const run = await loop.start({
      data: { val_files: loop.validationFile },
      trainer: { val_before_train: true, test_freq: 2, save_freq: 2 },
    });
    await loop.reaches(run, 'completed');
    await recordEnded('rl', run);
  });

  it('sft', async () => {
    const run = await loop.start({ kind: 'sft' });
    await loop.reaches(run, 'completed');
    await recordEnded('sft', run);
  });

  it('pause, resume, stop, cancel', async () => {
    const long = { trainer: { total_training_steps: 100 } };
    const run = await loop.start(long);
    await loop.passes(run, 1);
    await loop.tell(run, 'pause');
    await loop.reaches(run, 'paused');
    await loop.tell(run, 'run');
    await loop.passes(run, 4);
    await loop.tell(run, 'stop');
    await loop.reaches(run, 'stopped');
    await recordEnded('paused-resumed-stopped', run);
    await loop.resume(run);
    await loop.passes(run, 7);
    await loop.tell(run, 'cancel');
    await loop.reaches(run, 'cancelled');
    await recordEnded('resumed-cancelled', run);
  });

  it('a run that a failure paused', async () => {
    const run = await loop.start({
      reward: {
        custom_reward_function: {
          path: loop.scorer('broken', "if (solutionStr !== groundTruth) throw new Error('broken'); return 1;"),
          deterministic: true,
        },
      },
    });
    await loop.reaches(run, 'paused');
    await loop.tell(run, 'cancel');
    await loop.reaches(run, 'cancelled');
    await recordEnded('failure-paused-cancelled', run);
  });

  it('activities that were tried again', async () => {
    const run = await loop.start({ actor: { ppo_mini_batch_size: 2, ppo_epochs: 100 } });
    await loop.passes(run, 1);
    await kill(loop.process('control'));
    await loop.passes(run, 2);
    await kill(loop.process('local-1'));
    await loop.reaches(run, 'completed');
    await recordEnded('killed-and-retried', run);
  });

  it('a redo from an earlier iteration while the run is paused', async () => {
    const run = await loop.start({
      trainer: { total_training_steps: 4 },
      actor: { ppo_mini_batch_size: 2, ppo_epochs: 100 },
    });
    await loop.passes(run, 2);
    await loop.tell(run, 'pause');
    await loop.reaches(run, 'paused');
    await runWords(loop.home, ['resume', run.runId, '--from', '1', '--accept']);
    await loop.reaches(run, 'completed');
    await recordEnded('paused-redone', run);
  });

  it('a batch that is skipped', async () => {
    injector.arm({ id: 'batch', point: 'write.step', facts: { iteration: 2 }, action: 'segv', always: true });
    const run = await loop.start({ trainer: { total_training_steps: 3 } });
    await loop.reaches(run, 'paused');
    injector.disarmAll();
    await runWords(loop.home, ['resume', run.runId, '--skip']);
    await loop.reaches(run, 'completed');
    await recordEnded('skipped', run);
  });

  it('a run by schedule', async () => {
    const schedules = new SchedulesUnderTest(loop);
    const log = await schedules.add('timed', short, '--every', '10m');
    const workflowId = await schedules.send(log, second(1));
    await loop.client.workflow.getHandle(workflowId).result();
    await record('scheduled', { runId: workflowId });
    const [firing] = (await log.view()).firings;
    const run = schedules.runOf({ runId: firing?.runId });
    await loop.reaches(run, 'completed');
  });

  it('janitor', async () => {
    await sweepStore(loop.store, { now: new Date(), graceMs: 0 });
    const workflowId = 'janitor-recorded';
    await loop.client.workflow.execute('janitor', { workflowId, taskQueue, args: [{ store: loop.store.url }] });
    await record('janitor', { runId: workflowId });
  });

  it('continue as new', async () => {
    await stopStack(loop.home);
    process.env['PETREL_TEMPORAL_SETTINGS'] = 'limit.historyCount.suggestContinueAsNew=80';
    await loop.up();
    const run = await loop.start({ trainer: { total_training_steps: 5 } });
    const { runId: first } = await loop.client.workflow.getHandle(run.runId).describe();
    await loop.reaches(run, 'completed');
    await recordEnded('continued', run);
    await record('continues-as-new', run, first);
  });
});
