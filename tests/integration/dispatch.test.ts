import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PauseError, RetryableError, TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import {
  claimSubject,
  eventSubject,
  jobConsumerFilter,
  jobStream,
  leaseSubject,
  presenceBucket,
  presenceSubject,
} from '../../core/wire/messages.ts';
import type { JobMessage, Presence, Timing } from '../../core/wire/messages.ts';
import { identityText } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../core/wire/worker-identity.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import { Dispatcher, jobIdOf } from '../../infra/nats/jobs/dispatcher.ts';
import type { JobRequest, WaitOptions } from '../../core/ports/jobs.ts';
import { listWorkers, PresenceBeacon } from '../../infra/nats/jobs/presence.ts';
import type { Puller } from '../../infra/nats/jobs/puller.ts';
import type { PullerPorts } from '../../infra/nats/jobs/puller.ts';
import { ensureStreams } from '../../infra/nats/streams.ts';
import { openStore } from '../../infra/store/open.ts';
import { poll } from '../../infra/poll.ts';
import { Slots } from '../../workers/slots.ts';
import { Worker } from '../../workers/worker.ts';
import type { WorkerPorts } from '../../workers/worker.ts';
import { commitScores, rewardJob, rewardPuller } from '../reward-jobs.ts';
import { startNats } from '../servers.ts';
import { patienceMs } from '../patience.ts';

const timing: Timing = {
  ackWaitMs: 800,
  stallMs: 1_000,
  progressMs: 100,
  journalMs: 100,
  claimMs: 400,
  presenceMs: 1_500,
  watchdogMs: 200,
  heartbeatMs: 3_000,
};
const bounded = { everyMs: 20, timeoutMs: patienceMs };
const forEver = new Promise<never>(() => {});
function held(): { readonly wait: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const wait = new Promise<void>((resolve) => (open = resolve));
  return { wait, open };
}

const folder = mkdtempSync(join(tmpdir(), 'petrel-dispatch-'));
let server: Awaited<ReturnType<typeof startNats>>;
let nc: NatsConnection;
let store: Store;
let dispatcher: Dispatcher;
/** The instance of this machine, and a worker of another one. */
const here = 'here';
const identityOf = (worker: string): WorkerIdentity => ({ instance: here, worker, incarnation: String(++processes) });
let processes = 0;
const stranger = { instance: 'elsewhere', worker: 'w1' };
let runs = 0;
/** Functions that stop the workers of a test; each worker has a separate connection. */
const endings: (() => Promise<void>)[] = [];

beforeAll(async () => {
  server = await startNats(folder);
  nc = await connectNats(server, 'control');
  store = await openStore(join(folder, 'store'));
  dispatcher = await Dispatcher.open(nc, { process: 'control', instance: here, timing });
});
afterEach(async () => {
  await Promise.all(endings.splice(0).map((end) => end()));
  const jsm = await ensureStreams(nc, timing);
  await jsm.streams.purge(jobStream('reward'));
});
afterAll(async () => {
  await nc?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const connectWorker = async (identity: WorkerIdentity) =>
  connectNats(await server.asWorker(identity, ['reward']), identityText(identity));

const job = (settings: Record<string, unknown> = {}, runId = `dispatch-${++runs}`) => rewardJob(store, runId, settings);

interface TestWorker {
  readonly puller: Puller;
  /** Run ids of the jobs that it started, in order. */
  readonly began: string[];
  readonly aloneness: boolean[];
}

/** A worker whose work is the function `handle`. The result object is written when it resolves. */
async function work(
  name: string,
  handle: (message: JobMessage) => Promise<void>,
  more: Partial<PullerPorts> = {},
): Promise<TestWorker> {
  const identity = identityOf(name);
  const workerNc = await connectWorker(identity);
  const began: string[] = [];
  const aloneness: boolean[] = [];
  const puller = rewardPuller({
    nc: workerNc,
    timing,
    identity,
    ...more,
    handle: async (message, _progress, claim) => {
      began.push(message.runId);
      aloneness.push(claim.alone);
      await handle(message);
      await commitScores(store, message, { identity, claim, scores: identity.worker });
    },
  });
  endings.push(() => {
    puller.stop();
    return workerNc.close();
  });
  void puller.run();
  return { puller, began, aloneness };
}

const patient = (onProgress?: WaitOptions['onProgress']): WaitOptions => ({
  signal: AbortSignal.timeout(patienceMs),
  ...(onProgress && { onProgress }),
});
const waits = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a queue that refuses to hand out jobs', () => {
  it('is reported once, although the worker keeps trying; when the reason is gone it takes jobs', async () => {
    const jsm = await ensureStreams(nc, timing);
    const profile = 'refused';
    // A work queue allows one consumer for a subject.
    await jsm.consumers.add(jobStream('reward'), {
      durable_name: 'stranger',
      filter_subject: jobConsumerFilter('reward', profile),
      ack_policy: AckPolicy.Explicit,
    });
    const reasons: string[] = [];
    let tries = 0;
    const slots = new Slots(4);
    const room = {
      enter: () => {
        tries += 1;
        return slots.enter();
      },
      leave: () => slots.leave(),
    };
    const { began } = await work('refused', waits, {
      profile,
      room,
      onTrouble: (error) => reasons.push(String(error)),
    });
    expect(await poll(async () => tries > 50, bounded)).toBe(true);
    expect(reasons).toEqual([expect.stringContaining('consumer')]);
    await jsm.consumers.delete(jobStream('reward'), 'stranger');
    const request = { ...job(), profile };
    await dispatcher.run(request, patient());
    expect(began).toEqual([request.runId]);
  });
});

describe('a job over NATS', () => {
  it('is published, claimed and done, and returns its result; an existing result needs no worker', async () => {
    const request = job();
    const answer = dispatcher.run(request, patient());
    const { puller, began } = await work('w1', waits);
    const result = await answer;
    expect(result).toMatchObject({
      jobId: jobIdOf('reward', request.input),
      output: { scores: 'w1' },
      timings: { 'timing_s/reward': 1 },
    });
    puller.stop();
    expect(await dispatcher.run(request, patient())).toEqual(result);
    expect(began).toEqual([request.runId]);
    expect(await poll(async () => (await queued()) === 0, bounded)).toBe(true); // acked after the answer
  });

  it('is done once for any number of waiters, and a waiter that leaves does not affect the others', async () => {
    const request = job();
    const leaving = new AbortController();
    const left = dispatcher.run(request, { signal: leaving.signal });
    const answers = [dispatcher.run(request, patient()), dispatcher.run(request, patient())];
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    const { began } = await work('w1', waits);
    expect((await Promise.all(answers)).map(({ output }) => output.scores)).toEqual(['w1', 'w1']);
    expect(began).toHaveLength(1);
  });

  it('with the same input in two runs is two jobs, independent of each other', async () => {
    const [one, two] = [job({ same: true }), job({ same: true })];
    expect(jobIdOf('reward', one.input)).toBe(jobIdOf('reward', two.input));
    const failing = dispatcher.run(one, patient());
    const working = dispatcher.run(two, patient());
    const { began } = await work('w1', async ({ runId }) => {
      if (runId === one.runId) throw new TerminalError('Broken', 'this run only');
    });
    await expect(failing).rejects.toMatchObject({ code: 'Broken' });
    expect((await working).output.scores).toBe('w1');
    expect(began.sort()).toEqual([one.runId, two.runId].sort());
  });

  it('is refused to a second worker while the first one works on it', async () => {
    const request = job();
    const release = held();
    const answer = dispatcher.run(request, patient());
    const first = await work('w1', () => release.wait);
    await poll(() => first.began.length > 0, bounded);
    const second = await work('w2', waits);
    await redeliver(request);
    expect(second.began).toEqual([]);
    release.open();
    expect((await answer).output.scores).toBe('w1');
  });

  it('does not start without a waiter, and leaves the queue in the end', async () => {
    const request = job();
    const leaving = new AbortController();
    const left = dispatcher.run(request, { signal: leaving.signal });
    await poll(async () => (await queued()) === 1, bounded);
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    const { began } = await work('w1', waits);
    expect(await poll(async () => (await queued()) === 0, bounded)).toBe(true);
    expect(began).toEqual([]);
  });

  it('goes to another worker, alone, when its worker makes no progress, such as one with a stuck thread', async () => {
    const request = job();
    const answer = dispatcher.run(request, patient());
    const wedged = await work('wedged', () => forEver, { ticks: () => 7, room: new Slots(1) });
    await poll(() => wedged.began.length > 0, bounded);
    const fresh = await work('fresh', waits);
    expect((await answer).output.scores).toBe('fresh');
    expect(fresh.aloneness).toEqual([true]);
    expect(wedged.began).toHaveLength(1);
  });

  it('stays with a worker that pauses for less than the stall limit, and is never started twice by one worker', async () => {
    const request = job();
    const release = held();
    const answer = dispatcher.run(request, patient());
    const slow = await work('slow', () => release.wait, { ticks: () => 7, timing: { ...timing, stallMs: 60_000 } });
    await poll(() => slow.began.length > 0, bounded);
    await redeliver(request);
    release.open();
    expect((await answer).output.scores).toBe('slow');
    expect(slow.began).toHaveLength(1);
    expect(slow.aloneness).toEqual([false]);
  });

  it('survives the loss of the queue: the server is killed, its files are deleted, and it is restarted on the same port', async () => {
    const request = job();
    const reasons = new Set<string | undefined>();
    const answer = dispatcher.run(
      request,
      patient((_, because) => reasons.add(because)),
    );
    await poll(async () => (await queued()) === 1, bounded);
    const { began } = await work('w1', waits, {
      refuse: async () => (reasons.has('busy') ? undefined : { because: 'busy', delayMs: 100 }),
    });
    await poll(() => reasons.has('busy'), bounded);
    await server.kill();
    rmSync(join(folder, 'nats'), { recursive: true });
    await server.restart();
    expect((await answer).output.scores).toBe('w1');
    expect(began).toEqual([request.runId]);
  });

  it('shows why it waits: there is no worker, or all workers refuse', async () => {
    const request = job();
    const reasons: (string | undefined)[] = [];
    const answer = dispatcher.run(
      request,
      patient((_, because) => reasons.push(because)),
    );
    await poll(() => reasons.includes('no free worker with the role reward is available'), bounded);
    let refusal: string | undefined = 'leased to another';
    await work('w1', waits, {
      refuse: async () => (refusal === undefined ? undefined : { because: refusal, delayMs: 50 }),
    });
    await poll(() => reasons.includes('leased to another'), bounded);
    refusal = undefined;
    await answer;
    expect(new Set(reasons)).toEqual(
      new Set(['no free worker with the role reward is available', 'leased to another', undefined]),
    );
  });

  it('reports progress to its waiters', async () => {
    const seen: number[] = [];
    const release = held();
    const answer = dispatcher.run(
      job(),
      patient((progress) => progress && seen.push(progress.done)),
    );
    await work('w1', () => release.wait, {});
    await poll(() => seen.length >= 2, bounded);
    release.open();
    await answer;
  });
});

describe('the jobs of a cancelled run', () => {
  it('leave the queue, do not start, and end on their workers; they start again when the run is resumed', async () => {
    const [held1, waiting] = [job({ n: 1 }, 'cancelled'), job({ n: 2 }, 'cancelled')];
    const release = held();
    const notes: unknown[] = [];
    const told = nc.subscribe(leaseSubject, { callback: (_, message) => void notes.push(message.json()) });
    const answers = [held1, waiting].map((request) => dispatcher.run(request, patient()));
    const ends = Promise.allSettled(answers);
    const { began } = await work('w1', () => release.wait, { room: new Slots(1) });
    await poll(() => began.length === 1, bounded);
    await dispatcher.cancelJobs('cancelled');
    expect(await ends).toMatchObject([{ reason: { code: 'RunAtRest' } }, { reason: { code: 'RunAtRest' } }]);
    expect(await queued()).toBe(0);
    await expect(dispatcher.run(waiting, patient())).rejects.toMatchObject({ code: 'RunAtRest' });
    // This worker does not subscribe to the note about cancelled runs; a real worker may miss the note.
    expect(await poll(() => notes.length >= 3, bounded)).toBe(true);
    told.unsubscribe();
    expect(notes.at(-1)).toEqual({ v: 1, runId: 'cancelled', cancelled: true });
    release.open();
    dispatcher.runResumed('cancelled');
    expect((await dispatcher.run(waiting, patient())).output.scores).toBe('w1');
  });
});

describe('an invalid message', () => {
  it.each(['', '{"v":1', '\u0000', 'null', '{"v":2}'])('%j disturbs no process on any subject', async (text) => {
    const request = job();
    const jobId = jobIdOf('reward', request.input);
    const release = held();
    const seen: number[] = [];
    const answer = dispatcher.run(
      request,
      patient((progress) => progress && seen.push(progress.done)),
    );
    const identity = identityOf('hears');
    const workerNc = await connectWorker(identity);
    const worker = new Worker(
      { roles: [], threads: 1 },
      {
        nc: workerNc,
        identity,
        stackInstance: here,
        timing,
        home: folder,
        isKnownStore: () => true,
        die: () => {},
        renew: () => {},
      },
    );
    await worker.start();
    endings.push(async () => {
      await worker.stop();
      await workerNc.close();
    });
    await jetstream(nc).publish(`jobs.reward.any.${request.runId}.${jobId}`, text);
    for (const subject of [
      claimSubject('reward', request.runId, jobId, stranger),
      eventSubject(request.runId, jobId, stranger),
      presenceSubject({ ...stranger, roles: ['reward'] }),
      leaseSubject,
    ])
      nc.publish(subject, text);
    const { began } = await work('w1', () => release.wait);
    // The events come after the invalid text, so a process that fails on the text would have failed by then.
    expect(await poll(() => began.length > 0 && seen.length > 0, bounded)).toBe(true);
    release.open();
    await answer;
    expect(await poll(async () => (await queued()) === 0, bounded)).toBe(true);
    expect(await listWorkers(nc)).toBeInstanceOf(Array);
  });
});

describe('a failure', () => {
  const hint = 'fix it';
  it.each([
    new PauseError('NoSpace', 'the disk is full', { hint }),
    new TerminalError('Damaged', 'the object is gone', { hint }),
  ])('%s reaches the waiter whole', async (error) => {
    const answer = dispatcher.run(job(), patient());
    await work('w1', () => Promise.reject(error));
    await expect(answer).rejects.toMatchObject({ kind: error.kind, code: error.code, message: error.message, hint });
    expect(await queued()).toBe(0);
  });

  it('of unknown kind is retried three times, then the run pauses', async () => {
    const answer = dispatcher.run(job(), patient());
    const { began } = await work('w1', () => Promise.reject(new TypeError('x is undefined')));
    await expect(answer).rejects.toMatchObject({
      kind: 'pause',
      code: 'JobFailed',
      message: expect.stringContaining('x is undefined'),
    });
    expect(began).toHaveLength(3);
  });

  it('that is retryable is retried until it succeeds', async () => {
    let failures = 4;
    const answer = dispatcher.run(job(), patient());
    const { began } = await work('w1', () =>
      failures-- > 0 ? Promise.reject(new RetryableError('Slow', '503')) : Promise.resolve(),
    );
    await answer;
    expect(began).toHaveLength(5);
  });
});

describe('a worker', () => {
  it('runs no more jobs than it has slots', async () => {
    const requests = Array.from({ length: 5 }, () => job());
    const release = held();
    const answers = requests.map((request) => dispatcher.run(request, patient()));
    const { began } = await work('w1', () => release.wait, { room: new Slots(2) });
    await poll(() => began.length === 2, bounded);
    await poll(async () => (await waitingPulls()) === 0, bounded);
    expect(began).toHaveLength(2);
    release.open();
    await Promise.all(answers);
    expect(new Set(began).size).toBe(5);
  });

  it('is listed while it lives, and not soon after it died', async () => {
    const describeIt = (): Presence => ({
      v: 1,
      instance: here,
      worker: 'p1',
      incarnation: 'i',
      pid: 1,
      host: 'h',
      roles: ['reward'],
      state: 'ready',
      engines: [],
      threads: 1,
      profiles: [],
      jobs: [],
      failuresInARow: 0,
      loopDelayMs: 0,
      since: 'now',
    });
    const connection = await connectWorker({ instance: here, worker: 'p1', incarnation: 'i' });
    const beacon = new PresenceBeacon(connection, timing, describeIt);
    beacon.start();
    expect(await poll(async () => (await listWorkers(nc)).some(({ worker }) => worker === 'p1'), bounded)).toBe(true);
    for (let i = 0; i < 20; i++) await listWorkers(nc);
    const { state } = await (await jetstreamManager(nc)).streams.info(`KV_${presenceBucket}`);
    expect(state.consumer_count, 'consumers that reading leaves behind').toBe(0);
    await connection.close(); // like a machine that vanishes without closing its connection
    expect(await poll(async () => (await listWorkers(nc)).every(({ worker }) => worker !== 'p1'), bounded)).toBe(true);
    beacon.stop();
  });

  it('stops pulling and is unhealthy after three unknown failures in a row', async () => {
    const identity = identityOf('sick');
    const workerNc = await connectWorker(identity);
    const worker = new Worker(
      { roles: ['reward'], threads: 1 },
      {
        nc: workerNc,
        identity,
        stackInstance: here,
        timing,
        home: folder,
        isKnownStore: () => true,
        die: () => {},
        renew: () => {},
      },
    );
    await worker.start();
    // The worker fails with ENAMETOOLONG, which is none of petrel's errors. The dispatcher finds no result.
    const blind: Store = new Proxy(store, {
      get: (target, name) => (name === 'get' ? async () => undefined : bound(target, name)),
    });
    await expect(dispatcher.run({ ...job({}, 'x'.repeat(300)), store: blind }, patient())).rejects.toMatchObject({
      code: 'JobFailed',
    });
    const shown = await poll(
      async () => (await listWorkers(nc)).find(({ worker: name, state }) => name === 'sick' && state === 'unhealthy'),
      bounded,
    );
    expect(shown).toMatchObject({
      failuresInARow: 3,
      lastError: { code: 'Internal' },
    });
    expect(await poll(async () => (await waitingPulls()) === 0, bounded)).toBe(true);
    await worker.stop();
    await workerNc.close();
  });

  it('that cannot use the store leaves the job to another, shows why, and continues with other jobs', async () => {
    await startedWorker('unable');
    const unusable: Store = new Proxy(store, {
      get: (target, name) => (name === 'url' ? 'file://elsewhere/store' : bound(target, name)),
    });
    const reasons: (string | undefined)[] = [];
    const answer = dispatcher.run(
      { ...job(), store: unusable },
      patient((_, because) => reasons.push(because)),
    );
    expect(
      await poll(() => reasons.some((reason) => /^unable cannot run it: .*File URL host/.test(reason ?? '')), bounded),
    ).toBe(true);
    expect(await shownWith('unable', ({ lacks }) => lacks !== undefined)).toMatchObject({
      state: 'ready',
      failuresInARow: 0,
      lacks: [{ what: 'the store file://elsewhere/store', error: { code: 'StoreUnusable' } }],
    });
    // `unable` started the job.
    await expect(dispatcher.run(job(), patient())).rejects.toThrow('a job of the stage reward');
    await work('able', waits);
    expect((await answer).output.scores).toBe('able');
  });

  it('of another build accepts no job until its build is the stack’s', async () => {
    let ofStack = 'new';
    await startedWorker('old', { build: { own: 'old', ofStack: () => ofStack } });
    const reasons: (string | undefined)[] = [];
    const answer = dispatcher.run(
      job(),
      patient((_, because) => reasons.push(because)),
    );
    const why =
      'no free worker with the role reward is available; old: this worker runs build old of petrel, the stack runs new';
    expect(await poll(() => reasons.includes(why), bounded)).toBe(true);
    expect(await shownWith('old', ({ lacks }) => lacks !== undefined)).toMatchObject({
      state: 'unhealthy',
      lastError: { code: 'WrongBuild' },
    });
    ofStack = 'old';
    await expect(answer).rejects.toThrow('a job of the stage reward');
  });
});

/** The worker's presence, once the condition holds. */
function shownWith(name: string, is: (entry: Presence) => boolean) {
  return poll(async () => (await listWorkers(nc)).find((entry) => entry.worker === name && is(entry)), bounded);
}

/** The class of a worker process, with the role reward. */
async function startedWorker(name: string, more: Partial<WorkerPorts> = {}): Promise<void> {
  const identity = identityOf(name);
  const workerNc = await connectWorker(identity);
  const ports = {
    nc: workerNc,
    identity,
    stackInstance: here,
    timing,
    home: folder,
    isKnownStore: () => true,
    die: () => {},
    renew: () => {},
    ...more,
  };
  const worker = new Worker({ roles: ['reward'], threads: 1 }, ports);
  await worker.start();
  endings.push(async () => {
    await worker.stop();
    await workerNc.close();
  });
}

function bound(target: Store, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target);
  return typeof value === 'function' ? value.bind(target) : value;
}

async function queued(): Promise<number> {
  return (await (await ensureStreams(nc, timing)).streams.info(jobStream('reward'))).state.messages;
}

async function consumer() {
  return (await ensureStreams(nc, timing)).consumers.info(jobStream('reward'), 'reward-any');
}
const deliveries = async () => (await consumer()).delivered.consumer_seq;
const waitingPulls = async () => (await consumer()).num_waiting;

/**
 * Sends a job's message twice, as a restored queue would. Resolves when it was delivered, rejected and delivered again.
 */
async function redeliver(request: JobRequest<'reward'>): Promise<void> {
  const before = await deliveries();
  const jobId = jobIdOf('reward', request.input);
  const message = {
    v: 1,
    jobId,
    stage: 'reward',
    runId: request.runId,
    at: request.at,
    store: store.url,
    input: request.input,
  };
  await jetstream(nc).publish(`jobs.reward.any.${request.runId}.${jobId}`, JSON.stringify(message));
  expect(await poll(async () => (await deliveries()) >= before + 2, bounded)).toBe(true);
}
