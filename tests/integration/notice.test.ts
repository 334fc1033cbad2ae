// @module-tag long
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Presence } from '../../core/wire/messages.ts';
import { metadataVariable } from '../../infra/fleet/ec2-metadata.ts';
import { watchPresence } from '../../infra/nats/jobs/presence.ts';
import { freePorts, loopback } from '../../infra/ports.ts';
import { logTail } from '../../infra/stack/index.ts';
import { signalProcess } from '../../infra/stack/process.ts';
import type { ProcessIdentity } from '../../infra/stack/process.ts';
import { poll } from '../../infra/poll.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { longRecipe, longResponse, makeLongModel } from '../long-model.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';
import { firstQuick } from '../first-quick.ts';

/** The position in a response at which a rollout worker is told to leave. */
const toldAt = 200;

const { loop, injector: inject } = loopWithFaults();
const heard: Presence[] = [];
let metadata: MetadataService;
let model: string;

interface MetadataService {
  readonly endpoint: string;
  readonly server: Server;
  /** The answer for `spot/instance-action`; absent: no notice. */
  action: string | undefined;
}

beforeAll(async () => {
  metadata = await metadataService();
  process.env[metadataVariable] = metadata.endpoint;
  await loop.up([
    { name: 'train', count: 1, roles: ['trainer'], threads: 1 },
    { name: 'sample', count: 1, roles: ['rollout'], threads: 1 },
    { name: 'spot', count: 1, roles: ['rollout'], threads: 1, notice: 'ec2' },
    { name: 'score', count: 1, roles: ['reward'], threads: 1 },
  ]);
  watchPresence(loop.nc, (entry) => heard.push(entry));
  model = await makeLongModel(loop.home);
});
afterAll(async () => {
  delete process.env[metadataVariable];
  await new Promise((resolve) => {
    metadata.server.closeAllConnections();
    metadata.server.close(resolve);
  });
});

async function metadataService(): Promise<MetadataService> {
  const [port] = (await freePorts(1)) as [number];
  const service: MetadataService = {
    endpoint: `http://${loopback}:${port}`,
    action: undefined,
    server: createServer((request, response) => {
      if (request.url === '/latest/api/token') response.writeHead(200).end('token');
      else response.writeHead(service.action === undefined ? 404 : 200).end(service.action);
    }),
  };
  await new Promise<void>((resolve) => service.server.listen(port, loopback, resolve));
  return service;
}

/** Stops the process at the armed point, tells it to leave, and resumes it. */
async function whenItStands(id: string, tell: (process: ProcessIdentity) => void): Promise<void> {
  tell(await standing(id));
  inject.disarmAll();
}

async function standing(id: string, signal = AbortSignal.timeout(patienceMs)): Promise<ProcessIdentity> {
  const { identity } = await inject.stands(id, signal);
  if (identity === undefined) throw new Error(`${id} is gone`);
  return identity;
}

/**
 * Does what `whenItStands` does, and then stops at each token until the worker reports that it leaves, so that even a
 * fast worker gets the notice in time.
 */
async function whenItStandsAndGoesOnSlowly(worker: string, tell: (process: ProcessIdentity) => void): Promise<void> {
  let process = await standing(worker);
  tell(process);
  const over = new AbortController();
  const leaves = () => heard.some((entry) => entry.worker === worker && entry.state === 'draining');
  void poll(leaves, { everyMs: 10, timeoutMs: patienceMs }).then(() => over.abort());
  for (let position = toldAt + 1; position < longResponse && !over.signal.aborted; position++) {
    const id = `${worker}-${position}`;
    inject.arm({ id, point: 'sample.token', process: worker, facts: { position }, action: 'stand' });
    inject.thaw(process);
    process = await standing(id, over.signal).catch((error: unknown) => {
      if (over.signal.aborted) return process;
      throw error;
    });
    await delay(20);
    inject.disarm(id);
  }
  inject.disarmAll();
}

/** The worker reported that it leaves, and then ended by itself. */
async function left(run: StartedRun, worker: string, restarts: number): Promise<void> {
  const told = performance.now();
  await loop.until(run, `${worker} has left`, async () => (inject.child(worker)?.restarts ?? 0) > restarts);
  console.log(`${worker} was gone ${((performance.now() - told) / 1000).toFixed(1)} s after it was told`);
  expect(inject.child(worker)?.lastExit).toBe('exit code 0');
  expect(heard.some((entry) => entry.worker === worker && entry.state === 'draining')).toBe(true);
}

const restartsOf = (worker: string) => inject.child(worker)?.restarts ?? 0;

describe('a rollout worker that is told to leave during its samples', () => {
  let undisturbed: string[];
  beforeAll(async () => {
    const run = await loop.start(longRecipe(model));
    await loop.reaches(run, 'completed');
    undisturbed = await loop.states(run);
  });

  firstQuick([
    ['sample-1', 'SIGTERM', (process: ProcessIdentity) => void signalProcess(process, 'SIGTERM')],
    [
      'spot-1',
      'EC2 will terminate',
      () =>
        void (metadata.action = JSON.stringify({
          action: 'terminate',
          time: new Date(Date.now() + 15_000).toISOString(),
        })),
    ],
  ])('%s (%s) leaves them to others, who decode nothing again', async (worker, reason, tell) => {
    const restarts = restartsOf(worker);
    inject.arm({ id: worker, point: 'sample.token', process: worker, facts: { position: toldAt }, action: 'stand' });
    const run = await loop.start(longRecipe(model));
    await whenItStandsAndGoesOnSlowly(worker, tell);
    const [back] = await loop.said(run, /requeued/);
    metadata.action = undefined;
    await left(run, worker, restarts);
    await loop.reaches(run, 'completed');
    expect(back).toMatch(new RegExp(`^warn ${worker}: rollout rollout-\\w+: requeued: ${reason}`));
    const [resumed] = await loop.said(run, /resumed 8 of 8 samples, \d+ tokens/);
    // All tokens that it had decoded when it got the notice: at least seven of its samples had this length.
    expect(Number(/(\d+) tokens/.exec(resumed ?? '')?.[1])).toBeGreaterThanOrEqual(6 * (toldAt - 1));
    const [first] = await loop.iterations(run);
    const timings = first?.batch.timings ?? {};
    expect(Number(timings['rollout/resumed_tokens']) + Number(timings['rollout/decoded_tokens'])).toBe(
      responseTokens(first?.batch.metrics ?? {}),
    );
    expect(await loop.states(run)).toEqual(undisturbed);
  });
});

/** A batch has 16 samples. */
const responseTokens = (metrics: Readonly<Record<string, number | string>>) =>
  Math.round(16 * Number(metrics['response_length/mean']));

describe('with a small model', () => {
  const recipe = {
    actor: { ppo_mini_batch_size: 2, ppo_epochs: 50 },
    trainer: { total_training_steps: 4, save_freq: -1 },
  };
  let undisturbed: string[];
  beforeAll(async () => {
    const run = await loop.start(recipe);
    await loop.reaches(run, 'completed');
    undisturbed = await loop.states(run);
  });

  it('a trainer that is told to leave during an update finishes it and saves, so nothing is replayed', async () => {
    const restarts = restartsOf('train-1');
    inject.arm({
      id: 'updating',
      point: 'write.step',
      process: 'train-1',
      facts: { iteration: 3, step: 10 },
      action: 'stand',
    });
    const run = await loop.start(recipe);
    await whenItStands('updating', (process) => void signalProcess(process, 'SIGTERM'));
    await left(run, 'train-1', restarts);
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    await loop.said(run, /^info train-1: leaving: checkpoint 3 saved$/);
    await loop.said(run, /^info train-1: loaded checkpoint 3$/);
    expect((await run.log.checkpoints.all()).map(({ record }) => record.iteration)).toEqual([4, 3]);
    expect((await loop.lines(run)).filter((line) => line.includes('replayed') || line.includes('requeued'))).toEqual(
      [],
    );
  });

  it('a trainer that is told to leave between updates saves its state', { tags: ['long'] }, async () => {
    const restarts = restartsOf('train-1');
    inject.arm({ id: 'between', point: 'sample.token', facts: { draw: 9, sample: 0, position: 2 }, action: 'stand' });
    const run = await loop.start(recipe);
    await inject.stands('between', AbortSignal.timeout(patienceMs));
    const trainer = inject.process('train-1');
    if (trainer === undefined) throw new Error('there is no trainer');
    signalProcess(trainer, 'SIGTERM');
    await left(run, 'train-1', restarts);
    inject.disarmAll();
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    await loop.said(run, /^info train-1: leaving: checkpoint 2 saved$/);
    await loop.said(run, /^info train-1: loaded checkpoint 2$/);
    expect((await loop.lines(run)).filter((line) => line.includes('replayed'))).toEqual([]);
  });

  it('a reward worker that is told to leave finishes the samples in flight', { tags: ['long'] }, async () => {
    const restarts = restartsOf('score-1');
    inject.arm({
      id: 'scoring',
      point: 'job.begin',
      process: 'score-1',
      facts: { stage: 'reward', iteration: 1 },
      action: 'stand',
    });
    const run = await loop.start(recipe);
    await whenItStands('scoring', (process) => void signalProcess(process, 'SIGTERM'));
    await left(run, 'score-1', restarts);
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
    expect((await loop.lines(run)).filter((line) => line.includes('requeued: SIGTERM:'))).toEqual([]);
    expect(logTail(loop.home, 'score-1', 50)).toMatch(/leaving: SIGTERM; 19.0 s, [1-9] jobs in flight/);
  });
});
