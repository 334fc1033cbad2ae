/** Workers whose machine vanishes, is cut off, or has the same name as another. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { jobConsumer, jobStream, timings } from '../../core/wire/messages.ts';
import type { JobMessage, Presence, Timing } from '../../core/wire/messages.ts';
import { identityText } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../core/wire/worker-identity.ts';
import { connectNats, connectSystem } from '../../infra/nats/connection.ts';
import { askToDeclare } from '../../infra/nats/declarations.ts';
import { Departures } from '../../infra/nats/access/departures.ts';
import { Dispatcher } from '../../infra/nats/jobs/dispatcher.ts';
import type { JobRequest } from '../../core/ports/jobs.ts';
import { workerApiPrefix } from '../../infra/nats/exchange.ts';
import { listWorkers, PresenceBeacon } from '../../infra/nats/jobs/presence.ts';
import { poll } from '../../infra/poll.ts';
import { openStore } from '../../infra/store/open.ts';
import { startCutProxy } from '../cut-proxy.ts';
import type { CutProxy } from '../cut-proxy.ts';
import { commitScores, rewardJob, rewardPuller } from '../reward-jobs.ts';
import { startNats } from '../servers.ts';
import { patienceMs } from '../patience.ts';

/** No job changes hands, and no entry expires, because of time: only because of what the server tells. */
const timing: Timing = { ...timings.loopback, ackWaitMs: 3 * patienceMs, presenceMs: 3 * patienceMs, progressMs: 100 };
const bounded = { everyMs: 20, timeoutMs: patienceMs };
const folder = mkdtempSync(join(tmpdir(), 'petrel-departures-'));
let server: Awaited<ReturnType<typeof startNats>>;
let nc: NatsConnection;
let system: NatsConnection;
let store: Store;
let dispatcher: Dispatcher;
let proxy: CutProxy;
let processes = 0;
let jobs = 0;
const told: string[] = [];
const endings: (() => Promise<void>)[] = [];

beforeAll(async () => {
  server = await startNats(folder);
  proxy = await startCutProxy(Number(new URL(server.nats.url).port));
  nc = await connectNats(server, 'control');
  const asSystem = await connectSystem(server.nats, 'control');
  if (asSystem === undefined) throw new Error('the server has no system account');
  system = asSystem;
  store = await openStore(join(folder, 'store'));
  dispatcher = await Dispatcher.open(nc, {
    process: 'control',
    instance: 'control-machine',
    timing,
    ended: (runId, text) => told.push(`${runId}: ${text}`),
  });
  new Departures(system, (gone) => dispatcher.lost(gone));
  await system.flush();
});
afterEach(async () => {
  await Promise.all(endings.splice(0).map((end) => end()));
});
afterAll(async () => {
  await proxy?.close();
  await nc?.close();
  await system?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Machine {
  readonly identity: WorkerIdentity;
  readonly connection: NatsConnection;
  /** Runs whose jobs it began, and those of which it was told that another worker has them. */
  readonly began: string[];
  readonly lost: string[];
  finish(): void;
}

/** A worker that holds each job until `finish`; its machine reaches NATS through this port. */
async function machine(instance: string, worker: string, port: number): Promise<Machine> {
  const identity = { instance, worker, incarnation: String(++processes) };
  const { nats } = await server.asWorker(identity, ['reward']);
  const target = { nats: { ...nats, url: `nats://127.0.0.1:${port}` } };
  const connection = await connectNats(target, identityText(identity));
  const [began, lost]: [string[], string[]] = [[], []];
  const inFlight = new Set<JobMessage>();
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const puller = rewardPuller({
    nc: connection,
    timing,
    identity,
    onClaimLost: ({ runId }) => lost.push(runId),
    handle: async (message, _progress, claim) => {
      began.push(message.runId);
      inFlight.add(message);
      beacon.tell();
      await finished;
      await commitScores(store, message, { identity, claim, scores: instance });
      inFlight.delete(message);
    },
  });
  const entry = (): Presence => ({
    v: 1,
    ...identity,
    pid: 1,
    host: instance,
    roles: ['reward'],
    state: 'ready',
    engines: [],
    threads: 1,
    profiles: [],
    jobs: [...inFlight].map(({ jobId }) => jobId),
    failuresInARow: 0,
    loopDelayMs: 0,
    since: 'now',
  });
  const beacon = new PresenceBeacon(connection, timing, entry);
  beacon.start();
  void puller.run();
  endings.push(async () => {
    finish();
    puller.stop();
    beacon.stop();
    await connection.close();
  });
  return { identity, connection, began, lost, finish };
}

const direct = () => Number(new URL(server.nats.url).port);

const job = (runId = `run-${++jobs}`) => rewardJob(store, runId);

const run = (request: JobRequest<'reward'>) => dispatcher.run(request, { signal: AbortSignal.timeout(patienceMs) });
const listed = async () => (await listWorkers(nc)).map(({ instance, worker }) => `${instance}/${worker}`);
const until = async (holds: () => boolean | Promise<boolean>) => expect(await poll(holds, bounded)).toBe(true);

it('a machine that vanishes loses its jobs and its entry when its connection closes', async () => {
  const request = job();
  const answer = run(request);
  const vanishing = await machine('i-1', 'sampler', direct());
  await until(() => vanishing.began.length === 1);
  await until(async () => (await listed()).includes('i-1/sampler'));
  const other = await machine('i-2', 'sampler', direct());
  await vanishing.connection.close();
  await until(() => other.began.length === 1);
  other.finish();
  expect((await answer).output.scores).toBe('i-2');
  expect(told).toContain(`${request.runId}: worker i-1/sampler is gone: its connection closed`);
  await until(async () => !(await listed()).includes('i-1/sampler'));
  expect(await listed()).toContain('i-2/sampler');
});

it('a worker that connects again at once keeps its job', async () => {
  const request = job();
  const answer = run(request);
  const blinking = await machine('i-3', 'sampler', direct());
  await until(() => blinking.began.length === 1);
  const reconnected = new Promise<void>((resolve) => {
    void (async () => {
      for await (const { type } of blinking.connection.status()) if (type === 'reconnect') return resolve();
    })();
  });
  const other = await machine('i-4', 'sampler', direct());
  await blinking.connection.reconnect();
  await reconnected;
  // A later departure is noticed: the earlier one would have been, had it counted.
  await until(async () => (await listed()).includes('i-4/sampler'));
  await other.connection.close();
  await until(async () => !(await listed()).includes('i-4/sampler'));
  expect([blinking.began, blinking.lost, await listed()]).toEqual([[request.runId], [], ['i-3/sampler']]);
  blinking.finish();
  expect((await answer).output.scores).toBe('i-3');
});

it('a machine whose network is cut in silence loses its job, and is told so when the network is back', async () => {
  const request = job();
  const answer = run(request);
  const cutOff = await machine('i-5', 'sampler', proxy.port);
  await until(() => cutOff.began.length === 1);
  const other = await machine('i-6', 'sampler', direct());
  proxy.cut();
  await until(() => other.began.length === 1); // the server gives the connection up when its pings stay unanswered
  proxy.mend();
  await until(() => cutOff.lost.length === 1);
  expect(cutOff.lost).toEqual([request.runId]);
  other.finish();
  expect((await answer).output.scores).toBe('i-6');
});

it('a job that a machine took from the queue and had not claimed when it vanished goes to another at once', async () => {
  const identity = { instance: 'i-9', worker: 'sampler', incarnation: String(++processes) };
  const vanishing = await connectNats(await server.asWorker(identity, ['reward']), identityText(identity));
  await askToDeclare(vanishing, identity, { what: 'jobs', role: 'reward', profile: 'any' });
  const queue = await jetstream(vanishing, { apiPrefix: workerApiPrefix }).consumers.get(
    jobStream('reward'),
    jobConsumer('reward', 'any'),
  );
  const next = queue.next({ expires: patienceMs });
  const request = job();
  const answer = run(request);
  expect((await next)?.json()).toMatchObject({ runId: request.runId });
  await vanishing.close();
  const other = await machine('i-10', 'sampler', direct());
  await until(() => other.began.length === 1);
  other.finish();
  expect((await answer).output.scores).toBe('i-10');
});

it('machines with equal names do not disturb each other: one ends, and the other keeps its jobs', async () => {
  const [first, second] = [job(), job()];
  const answers = [run(first), run(second)];
  const one = await machine('i-7', 'worker-1', direct());
  await until(() => one.began.length === 2);
  const twin = await machine('i-8', 'worker-1', direct());
  await until(async () => (await listed()).includes('i-8/worker-1'));
  expect(await listed()).toContain('i-7/worker-1');
  await twin.connection.close();
  await until(async () => !(await listed()).includes('i-8/worker-1'));
  expect([await listed(), one.lost, twin.began]).toEqual([['i-7/worker-1'], [], []]);
  one.finish();
  expect((await Promise.all(answers)).map(({ output }) => output.scores)).toEqual(['i-7', 'i-7']);
});

it('on a server of others, whose processes have one credential, it is noticed by that, and nobody else can say it', async () => {
  const { credential } = server.nats;
  if (typeof credential !== 'object') throw new Error('the server has no credential');
  const gone: string[] = [];
  new Departures(system, ({ instance }) => gone.push(instance), credential.jwt);
  await system.flush();
  const connectAs = async (instance: string, target: typeof server.nats) =>
    connectNats({ nats: target }, identityText({ instance, worker: 'w1', incarnation: String(++processes) }));
  const stranger = await connectAs('pretended', (await server.asWorker({ instance: 'lab' }, ['reward'])).nats);
  const own = await connectAs('own', server.nats);
  await Promise.all([stranger.close(), own.close()]);
  await until(() => gone.includes('own'));
  expect(gone).toEqual(['own']);
});
