/** The workflow alone: a real Temporal server, and activities that keep the state of a run in memory. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import type { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Activities, RunRef } from '../../activities/index.ts';
import { startRunWorkflow } from '../../infra/temporal/run-workflow.ts';
import { PauseError, RetryableError, TerminalError } from '../../core/errors.ts';
import type { DesiredState } from '../../core/run-states.ts';
import { desiredStateSignal, outOfDateType, taskQueue } from '../../core/wire/workflow.ts';
import type { RunOutcome } from '../../core/wire/workflow.ts';
import { builtFile } from '../../infra/home.ts';
import { connectTemporalClient, connectTemporalWorker } from '../../infra/temporal/connection.ts';
import { errorToFailure } from '../../infra/temporal/failures.ts';
import { startTemporal } from '../servers.ts';

const suggestAfterEvents = 250;

/** The state of a run, as the store would hold it. */
class RunInMemory {
  term = 0;
  position = 0;
  pending = false;
  wish: DesiredState = 'run';
  readonly iterations: number;
  readonly states: string[] = [];
  recoveries = 0;
  validated: number[] = [];
  checkpoints: number[] = [];
  /** Called by the stages; they throw its errors. */
  at: (stage: string, run: RunInMemory) => void | Promise<void> = () => {};

  constructor(iterations: number) {
    this.iterations = iterations;
  }
}

const runs = new Map<string, RunInMemory>();
const runOf = ({ runId }: RunRef): RunInMemory => runs.get(runId) as RunInMemory;

async function reach(ref: RunRef, stage: string): Promise<RunInMemory> {
  const run = runOf(ref);
  try {
    await run.at(stage, run);
  } catch (error) {
    throw errorToFailure(error);
  }
  return run;
}

const activities: Omit<Activities, 'fireSchedule'> = {
  async recoverHead(ref) {
    const run = runOf(ref);
    run.recoveries += 1;
    const { term, position, iterations, pending, wish } = run;
    await reach(ref, 'recover');
    return { term, position, iterations, pending, wish, evaluationDue: false, valOnly: false };
  },
  async openTerm(ref) {
    const run = await reach(ref, 'open');
    run.term = 1;
    return { term: 1 };
  },
  async tendFleet() {
    throw new Error('no fleet comes here');
  },
  async sweep() {
    throw new Error('no janitor comes here');
  },
  async recordState(input) {
    const run = await reach(input, input.state);
    run.states.push(input.state);
  },
  async rollout(ref) {
    await reach(ref, 'rollout');
  },
  async reward(ref) {
    await reach(ref, 'reward');
  },
  async advantage(ref) {
    const run = await reach(ref, 'advantage');
    run.pending = true;
    return { batch: 'b' };
  },
  async update(ref) {
    // Like the real activity: the desired state is read before the answer is sent.
    const { wish } = runOf(ref);
    const run = await reach(ref, 'update');
    if (run.pending) run.position += 1;
    run.pending = false;
    return { position: run.position, wish, evaluationDue: run.position % 2 === 0 };
  },
  async evaluate(ref) {
    const run = await reach(ref, 'evaluate');
    run.validated.push(run.position);
    return { accuracy: 1 };
  },
  async checkpoint(ref) {
    const run = await reach(ref, 'checkpoint');
    run.checkpoints.push(run.position);
    return { manifest: 'm' };
  },
};

const folder = mkdtempSync(join(tmpdir(), 'petrel-drive-'));
let server: Awaited<ReturnType<typeof startTemporal>>;
let client: Client;
let connection: NativeConnection;
let worker: Worker;
let polling: Promise<void>;
beforeAll(async () => {
  // The SDK warns about each activity that its workflow abandoned.
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { filter: 'ERROR' } } });
  server = await startTemporal(folder, [`limit.historyCount.suggestContinueAsNew=${suggestAfterEvents}`]);
  client = await connectTemporalClient(server);
  connection = await connectTemporalWorker(server);
  worker = await Worker.create({
    connection,
    taskQueue,
    activities,
    workflowBundle: { code: readFileSync(builtFile('workflow-bundle.js'), 'utf8') },
  });
  polling = worker.run();
});
afterAll(async () => {
  worker?.shutdown();
  await polling;
  await connection?.close();
  await client?.connection.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

let count = 0;
interface Driven {
  readonly run: RunInMemory;
  readonly outcome: Promise<RunOutcome>;
  readonly tell: (wish: DesiredState) => Promise<void>;
  readonly workflowId: string;
}

async function drive(
  iterations: number,
  prepare: (run: RunInMemory, tell: Driven['tell']) => void = () => {},
): Promise<Driven> {
  const workflowId = `drive-${++count}`;
  const run = new RunInMemory(iterations);
  runs.set(workflowId, run);
  const tell = async (desired: DesiredState) => {
    run.wish = desired;
    await client.workflow.getHandle(workflowId).signal(desiredStateSignal, desired);
  };
  prepare(run, tell);
  await startRunWorkflow(client, { runId: workflowId, store: 'file:///nowhere' }, 'rl');
  return { run, tell, workflowId, outcome: client.workflow.getHandle(workflowId).result() as Promise<RunOutcome> };
}

/** Resolves when the run reaches a stage for the n-th time; the stage continues when the test allows it. */
function stopAt(run: RunInMemory, stage: string, n = 1): { readonly reached: Promise<void>; readonly go: () => void } {
  let [go, arrive] = [() => {}, () => {}];
  const gate = new Promise<void>((resolve) => (go = resolve));
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  let seen = 0;
  run.at = async (name) => {
    if (name !== stage || ++seen !== n) return;
    arrive();
    await gate;
  };
  return { reached, go };
}

describe('the workflow of a run', () => {
  it('runs its iterations, validates when due, and ends with a checkpoint', async () => {
    const { run, outcome } = await drive(4);
    expect(await outcome).toEqual({ state: 'completed', position: 4 });
    expect(run).toMatchObject({ states: ['running', 'completed'], validated: [2, 4], checkpoints: [4], recoveries: 1 });
  });

  it('continues in a new history when the old one is long, from the position in the store', async () => {
    const { run, outcome, workflowId } = await drive(24);
    expect(await outcome).toEqual({ state: 'completed', position: 24 });
    expect(run.recoveries).toBeGreaterThan(2);
    expect(run.states.at(-1)).toBe('completed');
    expect(run.states).not.toContain('failed');
    const { historyLength } = await client.workflow.getHandle(workflowId).describe();
    expect(historyLength).toBeLessThan(2 * suggestAfterEvents);
  });

  it('abandons responses when it must stop, but not a committed batch', async () => {
    let waiting: ReturnType<typeof stopAt> | undefined;
    const { run, outcome, tell } = await drive(9, (fresh) => (waiting = stopAt(fresh, 'rollout', 3)));
    await waiting?.reached;
    await tell('stop');
    expect(await outcome).toEqual({ state: 'stopped', position: 2 });
    expect(run).toMatchObject({ checkpoints: [2], states: ['running', 'stopped'] });
    waiting?.go();
  });

  it('finishes a running update when it must stop, although the update read an older desired state', async () => {
    let waiting: ReturnType<typeof stopAt> | undefined;
    const { outcome, tell } = await drive(9, (fresh) => (waiting = stopAt(fresh, 'update', 2)));
    await waiting?.reached;
    await tell('stop');
    waiting?.go();
    expect(await outcome).toEqual({ state: 'stopped', position: 2 });
  });

  it('obeys a signal that arrives during recoverHead, although the store was read before', async () => {
    let waiting: ReturnType<typeof stopAt> | undefined;
    const { run, outcome, tell } = await drive(9, (fresh) => (waiting = stopAt(fresh, 'recover')));
    await waiting?.reached;
    await tell('cancel');
    waiting?.go();
    expect(await outcome).toEqual({ state: 'cancelled', position: 0 });
    expect(run.states).toEqual(['cancelled']);
  });

  it.each(['open', 'update', 'evaluate', 'checkpoint'])('does not wait for %s when it is cancelled', async (stage) => {
    let waiting: ReturnType<typeof stopAt> | undefined;
    const { run, outcome, tell } = await drive(2, (fresh) => (waiting = stopAt(fresh, stage)));
    await waiting?.reached;
    await tell('cancel');
    expect((await outcome).state).toBe('cancelled');
    expect(run.states.at(-1)).toBe('cancelled');
    waiting?.go();
  });

  it('pauses with the reason when a person must act, and recovers from the store after a resume', async () => {
    let failures = 1;
    const { run, outcome, tell, workflowId } = await drive(3, (fresh) => {
      fresh.at = (stage) => {
        if (stage === 'advantage' && failures-- > 0) throw new PauseError('NoSpace', 'the disk is full');
      };
    });
    while (!run.states.includes('paused')) await client.workflow.getHandle(workflowId).query('live');
    await tell('run');
    expect(await outcome).toEqual({ state: 'completed', position: 3 });
    expect(run).toMatchObject({ states: ['running', 'paused', 'running', 'completed'], recoveries: 2 });
  });

  it('stops both parallel stages when one of them pauses the run', async () => {
    let tries = 0;
    const { run, outcome, tell, workflowId } = await drive(3, (fresh) => {
      fresh.at = (stage) => {
        if (stage === 'reward') throw new PauseError('NoScorer', 'the scorer is gone');
        if (stage !== 'rollout') return;
        tries += 1;
        throw new RetryableError('NoWorker', 'nobody does it');
      };
    });
    while (!run.states.includes('paused')) await client.workflow.getHandle(workflowId).query('live');
    let pending = 1;
    while (pending > 0)
      pending = (await client.workflow.getHandle(workflowId).describe()).raw.pendingActivities?.length ?? 0;
    expect(tries).toBeGreaterThan(0);
    await tell('cancel');
    expect(await outcome).toEqual({ state: 'cancelled', position: 0 });
  });

  it('stays paused when its workflow is started again', async () => {
    const { run, outcome, tell, workflowId } = await drive(3, (fresh) => {
      Object.assign(fresh, { term: 1, pending: true, wish: 'pause' });
    });
    while (!run.states.includes('paused')) await client.workflow.getHandle(workflowId).query('live');
    expect(run).toMatchObject({ states: ['paused'], pending: true, position: 0 });
    await tell('run');
    expect(await outcome).toEqual({ state: 'completed', position: 3 });
    expect(run).toMatchObject({ states: ['paused', 'running', 'completed'], recoveries: 2 });
  });

  it('tries to stop once per signal, when a person must act first', async () => {
    let [tries, full] = [0, true];
    const { run, outcome, tell, workflowId } = await drive(3, (fresh) => {
      Object.assign(fresh, { term: 1, wish: 'stop' });
      fresh.at = (stage) => {
        if (stage !== 'checkpoint') return;
        tries += 1;
        if (full) throw new PauseError('DiskFull', 'the disk is full');
      };
    });
    const handle = client.workflow.getHandle(workflowId);
    while ((await handle.query<{ state: string }>('live')).state !== 'paused' || !run.states.includes('paused'))
      await handle.query('live');
    await tell('pause');
    await handle.query('live');
    expect([tries, run.states]).toEqual([1, ['paused']]);
    full = false;
    await tell('stop');
    expect(await outcome).toEqual({ state: 'stopped', position: 0 });
    expect([tries, run.states]).toEqual([2, ['paused', 'stopped']]);
  });

  it('can be cancelled although a person must act before it could continue', async () => {
    const { run, outcome } = await drive(3, (fresh) => {
      Object.assign(fresh, { term: 1, wish: 'cancel' });
      fresh.at = (stage) => {
        if (stage === 'recover') throw new PauseError('LogHole', 'a record is gone');
      };
    });
    // The desired state cannot be read while a record is missing, so the signal carries it.
    await client.workflow.getHandle(`drive-${count}`).signal(desiredStateSignal, 'cancel');
    expect(await outcome).toEqual({ state: 'cancelled', position: 0 });
    expect(run.states.at(-1)).toBe('cancelled');
  });

  it('continues when it is resumed while it stops, because the store refuses the state stopped', async () => {
    const { run, outcome } = await drive(3, (fresh) => {
      Object.assign(fresh, { term: 1, position: 1, wish: 'stop' });
      fresh.at = (stage) => {
        if (stage === 'checkpoint') fresh.wish = 'run';
        if (stage === 'stopped') throw new TerminalError(outOfDateType, 'its desired state is run by now');
      };
    });
    expect(await outcome).toEqual({ state: 'completed', position: 3 });
    expect(run.states).toEqual(['running', 'completed']);
  });

  it('fails with the error when it is terminal', async () => {
    const { run, outcome } = await drive(3, (fresh) => {
      fresh.at = (stage) => {
        if (stage === 'update') throw new TerminalError('Damaged', 'a record is gone');
      };
    });
    await expect(outcome).rejects.toMatchObject({ cause: expect.any(ApplicationFailure) });
    await expect(outcome).rejects.toMatchObject({ cause: { type: 'Damaged', message: 'a record is gone' } });
    expect(run.states).toEqual(['running', 'failed']);
  });
});
