import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { journalStream } from '../../core/wire/journal.ts';
import { timings } from '../../core/wire/messages.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import { declareStreams } from '../../infra/nats/declarations.ts';
import { Journal, purgeJournal } from '../../infra/nats/journal.ts';
import { poll } from '../../infra/poll.ts';
import { startNats } from '../servers.ts';

const bounded = { everyMs: 20, timeoutMs: 30_000 };

const folder = mkdtempSync(join(tmpdir(), 'petrel-journal-'));
let server: Awaited<ReturnType<typeof startNats>>;
let control: NatsConnection;
const connections: NatsConnection[] = [];

beforeAll(async () => {
  server = await startNats(folder);
  control = await connectNats(server, 'control');
  await declareStreams(control, timings.local);
});
afterEach(async () => void (await Promise.all(connections.splice(0).map((nc) => nc.close()))));
afterAll(async () => {
  await control?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The journal of one worker, and how often it was told that entries were lost. */
async function worker(incarnation: string) {
  const nc = await connectNats(server, incarnation);
  connections.push(nc);
  const told = { losses: 0 };
  const journal = new Journal(nc, { instance: 'here', worker: incarnation }, { lost: () => (told.losses += 1) });
  return { nc, journal, told };
}

describe('the stream of the journal', () => {
  it('returns all entries of a job, from all workers, in order, until the job is done', async () => {
    const [a, b] = [await worker('a'), await worker('b')];
    expect(await a.journal.read('run', 'job')).toEqual([]);
    expect(await b.journal.read('run', 'job')).toEqual([]);
    a.journal.publish('run', 'job', 'one', 1);
    await a.journal.settled();
    b.journal.publish('run', 'job', 'two', 1);
    b.journal.publish('run', 'another', 'other', 1);
    b.journal.publish('another', 'job', 'other', 1);
    await b.journal.settled();
    a.journal.publish('run', 'job', 'three', 1);
    await a.journal.settled();
    expect(await (await worker('c')).journal.read('run', 'job')).toEqual(['one', 'two', 'three']);
    await purgeJournal(await jetstreamManager(a.nc), 'run', 'job');
    expect(await poll(async () => (await b.journal.read('run', 'job')).length === 0, bounded)).toBe(true);
    expect(await b.journal.read('run', 'another')).toEqual(['other']);
  });

  it('asks for all tokens again when the stream did not exist yet', async () => {
    const a = await worker('a');
    a.journal.publish('run', 'early', 'first', 1);
    expect(await poll(async () => a.told.losses === 1, bounded)).toBe(true);
    expect(await a.journal.read('run', 'early')).toEqual([]);
  });

  it('asks for all tokens again when the server lost the stream or was restarted', async () => {
    const a = await worker('a');
    await a.journal.read('run', 'lost');
    await (await jetstreamManager(a.nc)).streams.delete(journalStream);
    a.journal.publish('run', 'lost', 'one', 1);
    expect(await poll(async () => a.told.losses === 1, bounded)).toBe(true);
    await server.kill();
    await server.restart();
    expect(await poll(async () => a.told.losses === 2, bounded)).toBe(true);
    a.journal.publish('run', 'lost', 'again', 1);
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
    for (let i = 0; i < 2_000; i++) a.journal.publish('run', 'offline', text, 1); // 1 GB
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024);
    await server.restart();
    expect(await poll(async () => a.told.losses > 0, bounded)).toBe(true);
    expect(await a.journal.read('run', 'offline')).toEqual([]);
  });
});

async function cutOff(nc: NatsConnection): Promise<void> {
  for await (const { type } of nc.status()) if (type === 'disconnect') return;
}
