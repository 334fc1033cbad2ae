/**
 * A machine of a pool that turns against the stack, with the credential that it really has and the clients of NATS. The
 * server refuses what the machine may not do, and logs it. An act that the server cannot refuse changes nothing.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { declarationSubject } from '../../core/wire/declarations.ts';
import { endedSamplesSubject, samplesTakenSubject } from '../../core/wire/ended-samples.ts';
import { feedAsksSubject, feedAskSubject, feedSubject } from '../../core/wire/feed.ts';
import { journalReadSubject, journalStream, journalSubject } from '../../core/wire/journal.ts';
import {
  claimsOf,
  claimSubject,
  eventsOf,
  eventSubject,
  jobConsumer,
  jobStream,
  jobSubject,
  leaseSubject,
  leaseTakenSubject,
  liveSubject,
  logsOf,
  logSubject,
  presenceBucket,
  ownJobSubject,
  presenceEntrySubject,
  presencesSubject,
  presenceSubject,
  timings,
} from '../../core/wire/messages.ts';
import type { Presence, Timing } from '../../core/wire/messages.ts';
import { examplePresence } from '../../core/wire/examples.test-support.ts';
import { newWeightsSubject } from '../../core/wire/weights.ts';
import { permitSubject } from '../../core/wire/permits.ts';
import { identityText, inboxOf } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../core/wire/worker-identity.ts';
import { connectNats, connectSystem } from '../../infra/nats/connection.ts';
import { Departures } from '../../infra/nats/access/departures.ts';
import { Dispatcher, jobIdOf } from '../../infra/nats/jobs/dispatcher.ts';
import type { JobRequest } from '../../core/ports/jobs.ts';
import { workerApiPrefix } from '../../infra/nats/exchange.ts';
import { poll } from '../../infra/poll.ts';
import { openStore } from '../../infra/store/open.ts';
import { provenFailure } from '../../log/objects/result-proof.ts';
import { commitScores, rewardJob, rewardPuller } from '../reward-jobs.ts';
import { startNats } from '../servers.ts';
import { patienceMs } from '../patience.ts';

const timing: Timing = { ...timings.loopback, watchdogMs: 500, progressMs: 100 };
const bounded = { everyMs: 20, timeoutMs: patienceMs };
const folder = mkdtempSync(join(tmpdir(), 'petrel-hostile-'));
const hostileIdentity: WorkerIdentity = { instance: 'pool-a-1', worker: 'w1', incarnation: 'h1' };
const trainerIdentity: WorkerIdentity = { instance: 'pool-c-1', worker: 'w1', incarnation: 't1' };
const victimIdentity: WorkerIdentity = { instance: 'pool-b-1', worker: 'w1', incarnation: 'v1' };
let server: Awaited<ReturnType<typeof startNats>>;
let control: NatsConnection;
let system: NatsConnection;
let store: Store;
let dispatcher: Dispatcher;
let hostile: NatsConnection;
let trainer: NatsConnection;
let victim: NatsConnection;
const refused: string[] = [];
const endings: (() => Promise<void>)[] = [];
let runs = 0;

beforeAll(async () => {
  server = await startNats(folder);
  control = await connectNats(server, 'control');
  store = await openStore(join(folder, 'store'));
  dispatcher = await Dispatcher.open(control, { process: 'control', instance: 'control-machine', timing });
  const asSystem = await connectSystem(server.nats, 'control');
  if (asSystem === undefined) throw new Error('the server has no system account');
  system = asSystem;
  new Departures(system, (gone) => dispatcher.lost(gone));
  await system.flush();
  hostile = await connectNats(
    await server.asWorker(hostileIdentity, ['rollout', 'reward']),
    identityText(hostileIdentity),
  );
  victim = await connectNats(
    await server.asWorker(victimIdentity, ['rollout', 'reward']),
    identityText(victimIdentity),
  );
  trainer = await connectNats(await server.asWorker(trainerIdentity, ['trainer']), identityText(trainerIdentity));
  void collectRefusals(hostile);
  void collectRefusals(trainer);
});
afterEach(async () => {
  for (const end of endings.splice(0)) await end();
  await (await jetstreamManager(control)).streams.purge(jobStream('reward'));
  vi.restoreAllMocks();
});
afterAll(async () => {
  for (const nc of [hostile, trainer, victim, system, control]) await nc?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function collectRefusals(nc: NatsConnection): Promise<void> {
  for await (const status of nc.status()) if (status.type === 'error') refused.push(status.error.message);
}

/** The text of the server's log, which a stack keeps as its `nats` log. */
const serverLog = () => readFileSync(join(folder, 'nats.log'), 'utf8');

async function isRefused(
  what: 'Publish' | 'Subscription',
  subject: string,
  from: WorkerIdentity = hostileIdentity,
): Promise<void> {
  const said = `Permissions Violation for ${what} to "${subject}"`;
  expect(await poll(() => refused.some((text) => text.includes(said)), bounded), said).toBe(true);
  const logged = new RegExp(`${identityText(from)}.* ${what} Violation .*"${subject.replaceAll(/[$.*]/g, '\\$&')}"`);
  expect(await poll(() => logged.test(serverLog()), bounded), String(logged)).toBe(true);
}

const job = () => rewardJob(store, `run-${++runs}`);
const run = (request: JobRequest<'reward'>) => dispatcher.run(request, { signal: AbortSignal.timeout(patienceMs) });

/** An honest worker on the victim's machine, which holds its jobs until `finish`. */
function honest() {
  const began: string[] = [];
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const puller = rewardPuller({
    nc: victim,
    timing,
    identity: victimIdentity,
    handle: async (message, _progress, claim) => {
      began.push(message.runId);
      await finished;
      await commitScores(store, message, { identity: victimIdentity, claim, scores: 'honest' });
    },
  });
  const running = puller.run();
  endings.push(async () => {
    finish();
    puller.stop();
    await running;
  });
  return { began, finish };
}

describe('the server refuses to publish', () => {
  it.each([
    ['a job', jobSubject('reward', 'any', 'run', 'job')],
    ['a job of its own pool’s role', jobSubject('rollout', 'any', 'run', 'job')],
    ['a claim of another worker', claimSubject('reward', 'run', 'job', victimIdentity)],
    ['the claim of a trainer’s job', claimSubject('trainer', 'run', 'job', hostileIdentity)],
    ['that it is a trainer', presenceSubject({ ...hostileIdentity, roles: ['trainer'] })],
    ['an entry as a trainer', presenceEntrySubject({ ...hostileIdentity, roles: ['trainer'] })],
    ['an event of another worker', eventSubject('run', 'job', victimIdentity)],
    ['the presence of another worker', presenceSubject({ ...victimIdentity, roles: ['reward'] })],
    ['the entry of another worker', presenceEntrySubject({ ...victimIdentity, roles: ['reward'] })],
    ['journal entries of another worker', journalSubject('run', 'job', victimIdentity)],
    ['the question for a journal as another worker', journalReadSubject('run', 'job', victimIdentity)],
    ['log lines of another worker', logSubject('run', victimIdentity)],
    ['a permit’s question as another worker', permitSubject('run', victimIdentity)],
    ['a declaration as another worker', declarationSubject(victimIdentity)],
    ['that another worker has taken samples', samplesTakenSubject(identityText(victimIdentity))],
    ['a job for another worker alone', ownJobSubject(identityText(victimIdentity))],
    ['that a trainer has taken a run', leaseTakenSubject],
    ['the end of a run', leaseSubject],
    ['the progress of a run', liveSubject('run')],
    ['news of a run', feedSubject('run')],
    ['a question for the feed of a run', feedAskSubject('run')],
    ['into the inbox of another worker', `${inboxOf(victimIdentity)}.abc`],
    ['into an inbox of the control process', '_INBOX.abc'],
    ['the declaration of a stream', '$JS.API.STREAM.CREATE.MINE'],
    ['the change of a stream', `$JS.API.STREAM.UPDATE.${jobStream('reward')}`],
    ['the deletion of a stream', `$JS.API.STREAM.DELETE.${journalStream}`],
    ['the purge of a stream', `$JS.API.STREAM.PURGE.${jobStream('reward')}`],
    ['the deletion of a message', `$JS.API.STREAM.MSG.DELETE.${jobStream('reward')}`],
    ['the reading of messages', `$JS.API.STREAM.MSG.GET.${jobStream('reward')}`],
    ['the reading of the journal', `$JS.API.DIRECT.GET.${journalStream}`],
    ['the reading of presence', `$JS.API.DIRECT.GET.KV_${presenceBucket}`],
    ['the declaration of a consumer', `$JS.API.CONSUMER.CREATE.${jobStream('reward')}.mine`],
    ['the deletion of a consumer', `$JS.API.CONSUMER.DELETE.${jobStream('reward')}.reward-any`],
    ['the request of a trainer’s job', `${workerApiPrefix}.CONSUMER.MSG.NEXT.${jobStream('trainer')}.trainer-any`],
    ['the ack of a trainer’s job', `$JS.ACK.${jobStream('trainer')}.trainer-any.1.1.1.1.0`],
    ['a request to the system account', '$SYS.REQ.SERVER.PING'],
  ])('%s', async (_, subject) => {
    hostile.publish(subject, '{}');
    await isRefused('Publish', subject);
  });
});

describe('the server refuses to hear', () => {
  it.each([
    ['everything', '>'],
    ['the inbox of another worker', `${inboxOf(victimIdentity)}.>`],
    ['every inbox', '_INBOX.>'],
    ['the claims of a run', claimsOf('*', 'run', '*')],
    ['the events of a run', eventsOf('run', '*')],
    ['the logs of a run', logsOf('run')],
    ['the jobs of a queue', 'jobs.>'],
    ['the journal', 'journal.>'],
    ['the samples for another worker', endedSamplesSubject(identityText(victimIdentity))],
    ['the jobs for another worker alone', ownJobSubject(identityText(victimIdentity))],
    ['the presence of other workers', presencesSubject],
    ['the leases of trainers, without being one', leaseTakenSubject],
    ['the progress of a run', liveSubject('*')],
    ['news of a run', feedSubject('*')],
    ['questions for feeds', feedAsksSubject],
    ['requests to JetStream', '$JS.API.>'],
    ['events of the system account', '$SYS.>'],
  ])('%s', async (_, subject) => {
    hostile.subscribe(subject);
    await isRefused('Subscription', subject);
  });
});

describe('of a pool of trainers the server refuses to publish', () => {
  it.each([
    ['a job for trainers', jobSubject('trainer', 'any', 'run', 'job')],
    ['a claim of another worker', claimSubject('trainer', 'run', 'job', victimIdentity)],
    ['the claim of a sampler’s job', claimSubject('rollout', 'run', 'job', trainerIdentity)],
    ['that it samples', presenceSubject({ ...trainerIdentity, roles: ['rollout'] })],
    ['an event of another worker', eventSubject('run', 'job', victimIdentity)],
    ['that a trainer has taken a run', leaseTakenSubject],
    ['the end of a run', leaseSubject],
    ['new weights of a run', newWeightsSubject],
    ['journal entries', journalSubject('run', 'job', trainerIdentity)],
    ['a job for another worker alone', ownJobSubject(identityText(victimIdentity))],
    ['news of a run', feedSubject('run')],
    ['the purge of its queue', `$JS.API.STREAM.PURGE.${jobStream('trainer')}`],
    ['the request of a sampler’s job', `${workerApiPrefix}.CONSUMER.MSG.NEXT.${jobStream('rollout')}.rollout-any`],
    ['a request to the system account', '$SYS.REQ.SERVER.PING'],
  ])('%s', async (_, subject) => {
    trainer.publish(subject, '{}');
    await isRefused('Publish', subject, trainerIdentity);
  });

  it.each([
    ['to hear everything', '>'],
    ['to hear the claims of trainers', claimsOf('trainer', 'run', '*')],
    ['to hear the presence of other workers', presencesSubject],
    ['to hear the jobs for another worker alone', ownJobSubject(identityText(victimIdentity))],
  ])('%s', async (_, subject) => {
    trainer.subscribe(subject);
    await isRefused('Subscription', subject, trainerIdentity);
  });
});

describe('the control process', () => {
  it('lets no machine of another pool claim a job, whatever pool that says it is in', async () => {
    const request = { ...job(), needs: { pools: ['pool-b'] } };
    const abandoned = new AbortController();
    const answer = dispatcher.run(request, { signal: abandoned.signal }).catch(() => 'nobody did it');
    const identity = { instance: 'pool-a-0123456789ab', worker: 'w1', incarnation: 'x' };
    const liar = await connectNats(await server.asWorker(identity, ['reward']), identityText(identity));
    const jobId = jobIdOf('reward', request.input);
    const claim = async () =>
      (
        await liar.request(
          claimSubject('reward', request.runId, jobId, identity),
          JSON.stringify({ v: 1, jobId, incarnation: 'x' }),
        )
      ).json();
    // Nobody answers before the job is asked for.
    expect(await poll(() => claim().catch(() => undefined), bounded)).toMatchObject({ answer: 'held' });
    const says = { roles: ['reward' as const], pool: 'pool-b', profiles: ['any_in_pool-b'] };
    const entry: Presence = { ...examplePresence, ...identity, ...says };
    liar.publish(presenceSubject(entry), JSON.stringify(entry));
    const isListed = async () => (await dispatcher.workers()).some((one) => one.instance === identity.instance);
    expect(await poll(isListed, bounded)).toBe(true);
    expect(await claim()).toMatchObject({ answer: 'held' });
    abandoned.abort();
    expect(await answer).toBe('nobody did it');
    await liar.close();
    expect(await poll(async () => !(await isListed()), bounded)).toBe(true);
  });

  it('is not made to speak under a subject that a worker may not use, by a request that asks for the answer there', async () => {
    const request = job();
    const answer = run(request);
    const worker = honest();
    expect(await poll(() => worker.began.length === 1, bounded)).toBe(true);
    const before = await sequences();
    const heard: string[] = [];
    const all = control.subscribe('>', { callback: (_, { subject }) => void heard.push(subject) });
    await control.flush();
    const jobId = jobIdOf('reward', request.input);
    const subject = claimSubject('reward', request.runId, jobId, hostileIdentity);
    const claim = JSON.stringify({ v: 1, jobId, incarnation: 'h1' });
    for (const reply of forbidden(request.runId, jobId)) {
      hostile.publish(subject, claim, { reply });
      hostile.publish(declarationSubject(hostileIdentity), JSON.stringify({ v: 1, what: 'journal' }), { reply });
    }
    expect((await hostile.request(subject, claim)).json()).toMatchObject({ answer: 'held' });
    all.unsubscribe();
    expect(heard.filter((name) => forbidden(request.runId, jobId).includes(name))).toEqual([]);
    expect(await sequences()).toEqual(before);
    worker.finish();
    expect((await answer).output.scores).toBe('honest');
  });

  it('does not take a worker for gone because another’s connection of that name has closed', async () => {
    const request = job();
    const answer = run(request);
    const worker = honest();
    expect(await poll(() => worker.began.length === 1, bounded)).toBe(true);
    const lost = vi.spyOn(dispatcher, 'lost');
    const disguised = await connectNats(
      await server.asWorker(hostileIdentity, ['reward']),
      identityText(victimIdentity),
    );
    await disguised.close();
    // A later departure is noticed: the earlier one would have been.
    const third = { instance: 'pool-a-1', worker: 'w3', incarnation: 'x' };
    await (await connectNats(await server.asWorker(third, ['reward']), identityText(third))).close();
    expect(await poll(() => lost.mock.calls.length > 0, bounded)).toBe(true);
    expect(lost.mock.calls).toEqual([[third]]);
    worker.finish();
    expect((await answer).output.scores).toBe('honest');
  });

  it('gives a journal only to the worker that holds the job', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { input: _, ...asked } = job();
    const request = { ...asked, stage: 'rollout', input: { seed: [runs, 0] } } as unknown as JobRequest<'rollout'>;
    const leaving = new AbortController();
    const answer = dispatcher.run(request, { signal: leaving.signal });
    const jobId = jobIdOf('rollout', request.input);
    await claimed(victim, claimSubject('rollout', request.runId, jobId, victimIdentity), victimIdentity.incarnation);
    const question = (incarnation: string) => JSON.stringify({ v: 1, incarnation, from: 1 });
    const entries = await victim.request(
      journalReadSubject(request.runId, jobId, victimIdentity),
      question(victimIdentity.incarnation),
    );
    expect(entries.json()).toEqual({ v: 1, entries: [] });
    const subject = journalReadSubject(request.runId, jobId, hostileIdentity);
    for (const incarnation of [hostileIdentity, victimIdentity].map((identity) => identity.incarnation))
      hostile.publish(subject, question(incarnation), { reply: `${inboxOf(hostileIdentity)}.x` });
    expect(await poll(() => said.mock.calls.length === 2, bounded)).toBe(true);
    expect(said.mock.calls.flat()).toEqual(
      [1, 2].map(() => `${subject}: pool-a-1/w1 does not hold the job, and gets no journal`),
    );
    leaving.abort();
    await expect(answer).rejects.toThrow('aborted');
  });

  it('does not let a job fail because one says so that has not claimed it, or whose claim is over', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const request = job();
    const answer = run(request);
    const jobId = jobIdOf('reward', request.input);
    const secret = await claimed(hostile, claimSubject('reward', request.runId, jobId, hostileIdentity), 'h1');
    const subject = eventSubject(request.runId, jobId, hostileIdentity);
    const failed = {
      v: 1,
      type: 'failed',
      incarnation: 'h1',
      kind: 'terminal',
      error: { code: 'X', message: 'x' },
    } as const;
    // Its own claim ends: it gives the job back.
    hostile.publish(subject, JSON.stringify({ v: 1, type: 'queued', because: 'busy' }));
    hostile.publish(subject, JSON.stringify(provenFailure(failed, '00')));
    hostile.publish(subject, JSON.stringify(provenFailure({ ...failed, incarnation: 'h2' }, secret)));
    expect(await poll(() => said.mock.calls.length === 2, bounded)).toBe(true);
    expect(said.mock.calls.flat()).toEqual(
      [1, 2].map(() => `${subject}: dropped a failure whose sender cannot prove that it had claimed the job`),
    );
    const worker = honest();
    expect(await poll(() => worker.began.length === 1, bounded)).toBe(true);
    hostile.publish(subject, JSON.stringify(provenFailure(failed, secret)));
    await hostile.flush();
    worker.finish();
    expect((await answer).output.scores).toBe('honest');
  });

  it('publishes a job again that a worker of the queue takes and throws away', async () => {
    const request = job();
    const answer = run(request);
    const consumer = await jetstream(hostile, { apiPrefix: workerApiPrefix }).consumers.get(
      jobStream('reward'),
      jobConsumer('reward', 'any'),
    );
    const taken = await consumer.next({ expires: 30_000 });
    expect(taken?.subject).toContain(request.runId);
    expect(await taken?.ackAck()).toBe(true);
    const worker = honest();
    worker.finish();
    expect((await answer).output.scores).toBe('honest');
  });

  it('is not spoken for by the queue, which delivers jobs, and the news that there are none, where a worker asks', async () => {
    const request = job();
    const answer = run(request);
    const jobId = jobIdOf('reward', request.input);
    const before = await sequences();
    const next = `${workerApiPrefix}.CONSUMER.MSG.NEXT.${jobStream('reward')}.${jobConsumer('reward', 'any')}`;
    const heard: string[] = [];
    const all = control.subscribe('>', { callback: (_, { subject }) => void heard.push(subject) });
    for (const reply of forbidden(request.runId, jobId))
      hostile.publish(next, JSON.stringify({ batch: 1, expires: 2e8 }), { reply });
    // This one is asked last, so the others have ended when it ends.
    const last = hostile.request(next, JSON.stringify({ batch: 1, expires: 4e8 }), { timeout: patienceMs });
    await last;
    const worker = honest();
    worker.finish();
    expect((await answer).output.scores).toBe('honest');
    all.unsubscribe();
    expect(heard.filter((name) => forbidden(request.runId, jobId).includes(name))).toEqual([]);
    expect(await sequences()).toEqual(before);
  });

  it('goes on while a worker floods it', async () => {
    const request = job();
    const answer = run(request);
    const subjects = [
      claimSubject('reward', request.runId, 'other', hostileIdentity),
      eventSubject(request.runId, jobIdOf('reward', request.input), hostileIdentity),
      presenceSubject({ ...hostileIdentity, roles: ['rollout', 'reward'] }),
      logSubject(request.runId, hostileIdentity),
    ];
    const text = JSON.stringify({ v: 1, type: 'queued', because: 'x'.repeat(1_000) });
    for (let i = 0; i < 20_000; i++) hostile.publish(subjects[i % subjects.length] ?? '', text);
    await hostile.flush();
    const worker = honest();
    worker.finish();
    expect((await answer).output.scores).toBe('honest');
  });

  it('takes no longer message than a worker needs', () => {
    expect(hostile.info?.max_payload).toBe(2 * 1024 * 1024);
    expect(control.info?.max_payload).toBe(8 * 1024 * 1024);
  });
});

/** Claims a job, once a waiter listens. Resolves with the secret of the claim. */
async function claimed(nc: NatsConnection, subject: string, incarnation: string): Promise<string> {
  const jobId = subject.split('.')[3];
  const request = JSON.stringify({ v: 1, jobId, incarnation });
  const reply = await poll(async () => nc.request(subject, request).catch(() => undefined), bounded);
  const answer = reply?.json<{ answer: string; secret: string }>();
  expect(answer?.answer).toBe('go');
  return answer?.secret ?? '';
}

/** Subjects that only the control process or another worker may use. */
const forbidden = (runId: string, jobId: string): string[] => [
  `$JS.API.STREAM.DELETE.${journalStream}`,
  `$JS.API.STREAM.PURGE.${jobStream('trainer')}`,
  jobSubject('trainer', 'any', runId, jobId),
  leaseSubject,
  liveSubject(runId),
  feedSubject(runId),
  feedAskSubject(runId),
];

/** How many messages each stream has ever had; fails for a stream that was deleted. */
async function sequences() {
  const jsm = await jetstreamManager(control);
  const names = [jobStream('trainer'), journalStream];
  return Promise.all(names.map(async (name) => (await jsm.streams.info(name)).state.last_seq));
}
