import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { journalReadsOf, journalRequest, journalStream } from '../../core/wire/journal.ts';
import { timings } from '../../core/wire/messages.ts';
import { identityText } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../core/wire/worker-identity.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import { declareStreams } from '../../infra/nats/declarations.ts';
import { readMessage } from '../../infra/nats/incoming.ts';
import { Journal } from '../../infra/nats/journal/journal.ts';
import { purgeJournal, readEntries } from '../../infra/nats/journal/journal-entries.ts';
import { poll } from '../../infra/poll.ts';
import { claimSecret } from '../../log/objects/result-proof.ts';
import { startNats } from '../servers.ts';
import { patienceMs } from '../patience.ts';

const bounded = { everyMs: 20, timeoutMs: patienceMs };

const folder = mkdtempSync(join(tmpdir(), 'petrel-journal-'));
let server: Awaited<ReturnType<typeof startNats>>;
let control: NatsConnection;
const connections: NatsConnection[] = [];

beforeAll(async () => {
  server = await startNats(folder);
  control = await connectNats(server, 'control');
  await declareStreams(control, timings.loopback);
  const { direct } = await jetstreamManager(control);
  control.subscribe(journalReadsOf('*', '*'), {
    callback: (_, message) => {
      const [, runId = '', jobId = ''] = message.subject.split('.');
      const from = readMessage(message, journalRequest)?.from ?? 0;
      const entries = readEntries(direct, { runId, jobId, secretOf: secretsOf(runId, jobId) }, from);
      void entries.then((reply) => message.respond(JSON.stringify(reply)));
    },
  });
});
afterEach(async () => void (await Promise.all(connections.splice(0).map((nc) => nc.close()))));
afterAll(async () => {
  await control?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const secretsOf = (runId: string, jobId: string) => (claimant: WorkerIdentity) =>
  claimSecret('00', runId, jobId, identityText(claimant));

/** The journal of one worker, which has claimed every job, and how often it was told that entries were lost. */
async function worker(name: string) {
  const identity = { instance: `machine-${name}`, worker: 'w', incarnation: name };
  const nc = await connectNats(await server.asWorker(identity, ['rollout']), identityText(identity));
  connections.push(nc);
  const told = { losses: 0 };
  const journal = new Journal(nc, identity, { lost: () => (told.losses += 1) });
  const publish = (runId: string, jobId: string, text: string) =>
    journal.publish({ runId, jobId, secret: secretsOf(runId, jobId)(identity) }, text, 1);
  return { nc, identity, journal, publish, told };
}

describe('the stream of the journal', () => {
  it('returns all entries of a job, from all workers, in order, until the job is done', async () => {
    const [a, b] = [await worker('a'), await worker('b')];
    expect(await a.journal.read('run', 'job')).toEqual([]);
    expect(await b.journal.read('run', 'job')).toEqual([]);
    a.publish('run', 'job', 'one');
    await a.journal.settled();
    b.publish('run', 'job', 'two');
    b.publish('run', 'another', 'other');
    b.publish('another', 'job', 'other');
    await b.journal.settled();
    a.publish('run', 'job', 'three');
    await a.journal.settled();
    expect(await (await worker('c')).journal.read('run', 'job')).toEqual(['one', 'two', 'three']);
    await purgeJournal(await jetstreamManager(control), 'run', 'job');
    expect(await poll(async () => (await b.journal.read('run', 'job')).length === 0, bounded)).toBe(true);
    expect(await b.journal.read('run', 'another')).toEqual(['other']);
  });

  it('returns a long journal in parts', async () => {
    const a = await worker('a');
    await a.journal.read('run', 'long');
    const texts = Array.from({ length: 7 }, (_, i) => String(i).repeat(400_000));
    for (const text of texts) a.publish('run', 'long', text);
    await a.journal.settled();
    expect((await a.journal.read('run', 'long')).map((text) => [text[0], text.length])).toEqual(
      texts.map((text) => [text[0], 400_000]),
    );
  });

  it('leaves out the entries of a worker that had not claimed the job', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    const [a, forger] = [await worker('a'), await worker('forger')];
    await Promise.all([a.journal.opened(), forger.journal.opened()]);
    a.publish('run', 'guarded', 'one');
    await a.journal.settled();
    const ofAnother = secretsOf('run', 'another')(forger.identity);
    forger.journal.publish({ runId: 'run', jobId: 'guarded', secret: ofAnother }, 'forged', 1);
    await forger.journal.settled();
    const ofA = secretsOf('run', 'guarded')({ ...a.identity, incarnation: 'forger' });
    forger.journal.publish({ runId: 'run', jobId: 'guarded', secret: ofA }, 'forged', 1);
    await forger.journal.settled();
    a.publish('run', 'guarded', 'two');
    await a.journal.settled();
    expect(await a.journal.read('run', 'guarded')).toEqual(['one', 'two']);
    expect(said.mock.calls).toHaveLength(2);
    expect(said.mock.calls[0]?.[0]).toContain('journal.run.guarded.machine-forger.w: left out an entry');
    said.mockRestore();
  });

  it('asks for all tokens again when the stream did not exist yet', async () => {
    const a = await worker('a');
    a.publish('run', 'early', 'first');
    expect(await poll(async () => a.told.losses === 1, bounded)).toBe(true);
    expect(await a.journal.read('run', 'early')).toEqual([]);
  });

  it('asks for all tokens again when the server lost the stream or was restarted', async () => {
    const a = await worker('a');
    await a.journal.read('run', 'lost');
    await (await jetstreamManager(control)).streams.delete(journalStream);
    a.publish('run', 'lost', 'one');
    expect(await poll(async () => a.told.losses === 1, bounded)).toBe(true);
    await server.kill();
    await server.restart();
    expect(await poll(async () => a.told.losses === 2, bounded)).toBe(true);
    a.publish('run', 'lost', 'again');
    await a.journal.settled();
    expect(await a.journal.read('run', 'lost')).toEqual(['again']);
  });

  it('drops entries instead of buffering them while there is no server', async () => {
    const a = await worker('a');
    await a.journal.read('run', 'offline');
    const cut = cutOff(a.nc);
    await server.kill();
    await cut;
    const before = process.memoryUsage().rss;
    const text = 'x'.repeat(500_000);
    for (let i = 0; i < 2_000; i++) a.publish('run', 'offline', text); // 1 GB
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024);
    await server.restart();
    expect(await poll(async () => a.told.losses > 0, bounded)).toBe(true);
    expect(await a.journal.read('run', 'offline')).toEqual([]);
  });
});

async function cutOff(nc: NatsConnection): Promise<void> {
  for await (const { type } of nc.status()) if (type === 'disconnect') return;
}
