import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectNats, isOlder } from '../infra/nats/connection.ts';
import { isAlive } from '../infra/stack/process.ts';
import { connectTemporalClient, connectTemporalWorker } from '../infra/temporal/connection.ts';
import { startNats, startTemporal, temporaryHome } from './servers.ts';
import type { TemporaryHome } from './servers.ts';

let temporary: TemporaryHome;
beforeEach(() => {
  temporary = temporaryHome();
});
afterEach(() => temporary.remove());

describe('a NATS server of the tests', () => {
  it('keeps its streams when it is killed, and the client comes back by itself', async () => {
    const server = await startNats(temporary.home);
    const log: string[] = [];
    const client = await connectNats(server, 'test', { log: (line) => log.push(line) });
    await (await jetstreamManager(client)).streams.add({ name: 'JOBS', subjects: ['jobs.>'] });
    await jetstream(client).publish('jobs.1', 'one');

    await server.kill();
    const back = reconnection(client);
    await server.restart();
    await back;
    expect((await (await jetstreamManager(client)).streams.info('JOBS')).state.messages).toBe(1);
    expect(log.map((line) => line.split(' ')[2])).toContain('reconnect');

    await client.close();
    await server.stop();
    expect(isAlive(server.process)).toBe(false);
  });
});

describe('a Temporal server of the tests', () => {
  it('keeps its workflows when it is killed', async () => {
    const server = await startTemporal(temporary.home);
    const client = await connectTemporalClient(server);
    await client.workflow.start('nobodyPolls', { taskQueue: 'none', workflowId: 'survivor' });
    await server.kill();
    await server.restart();
    expect((await client.workflow.getHandle('survivor').describe()).status.name).toBe('RUNNING');
    await client.connection.close();
    await (await connectTemporalWorker(server)).close();
    await server.stop();
  });
});

describe('connections', () => {
  it('say what is missing when no server answers', async () => {
    const nowhere = { nats: { url: 'nats://127.0.0.1:9' }, temporal: { address: '127.0.0.1:9' } };
    await expect(connectNats(nowhere, 'test', { timeoutMs: 200 })).rejects.toMatchObject({
      code: 'NatsUnreachable',
      hint: 'petrel up',
    });
    await expect(connectTemporalWorker(nowhere, 200)).rejects.toMatchObject({
      code: 'TemporalUnreachable',
      kind: 'retryable',
    });
  });

  it.each([
    ['2.9.10', true],
    ['2.11.0', false],
    ['2.11.0-RC.1', false],
    ['2.15.1', false],
    ['3.0.0', false],
    ['unknown', true],
  ])('take nats-server %s for too old: %s', (version, old) => {
    expect(isOlder(version, '2.11.0')).toBe(old);
  });
});

async function reconnection(client: Awaited<ReturnType<typeof connectNats>>): Promise<void> {
  for await (const { type } of client.status()) if (type === 'reconnect') return;
}
