import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { brokenProgram, pids, processOf, StackUnderTest } from '../../tests/stack-under-test.ts';
import { builtFile } from '../home.ts';
import { connectNats } from '../nats/connection.ts';
import { newNatsKey } from '../nats/nkey.ts';
import { freePorts } from '../ports.ts';
import { connectTemporalClient } from '../temporal/connection.ts';
import { newPayloadKey } from '../temporal/payload-codec.ts';
import { strangers } from './adoption.ts';
import { ensureStack, logTail, readStack, setPools, stackHealth, stopStack } from './index.ts';
import type { WorkerPool } from './index.ts';
import { isAlive } from './process.ts';

let under: StackUnderTest;
let home: string;
beforeEach(() => {
  under = new StackUnderTest();
  home = under.home;
});
afterEach(() => under.remove());

describe('the local stack', () => {
  it('comes up completely, serves Temporal and NATS, and leaves no process behind', async () => {
    const lines: string[] = [];
    const stack = await ensureStack({ home, programs: under.programs, onProgress: (line) => lines.push(line) });
    expect(stack.children.map(({ name, state }) => [name, state])).toEqual(
      ['temporal', 'nats', 'control', 'local-1'].map((name) => [name, 'ready']),
    );
    expect(lines).toContain('temporal: ready');

    const client = await connectTemporalClient(stack);
    const { namespaceInfo, config } = await client.connection.workflowService.describeNamespace({
      namespace: 'default',
    });
    expect([namespaceInfo?.name, Number(config?.workflowExecutionRetentionTtl?.seconds)]).toEqual([
      'default',
      30 * 24 * 3600,
    ]);
    await client.connection.close();
    const nats = await connectNats(stack, 'test');
    expect(nats.info?.jetstream).toBe(true);
    await nats.close();
    await expect(
      connectNats(
        { nats: { url: stack.nats.url, credential: { key: newNatsKey(), jwt: stack.nats.credential?.jwt ?? '' } } },
        'thief',
        { timeoutMs: 0 },
      ),
    ).rejects.toMatchObject({ code: 'NatsUnreachable' });
    expect(await stackHealth(home)).toMatchObject({ state: 'up', problems: [] });

    const all = [stack, ...stack.children.map(({ name }) => processOf(stack, name))];
    expect((await stopStack(home)).stopped.sort()).toEqual(['control', 'local-1', 'nats', 'temporal']);
    expect(all.filter(isAlive)).toEqual([]);
    expect(readStack(home)).toBeUndefined();
    expect(await stackHealth(home)).toMatchObject({ state: 'down' });
  });

  it('is one stack when two processes start it at once', async () => {
    const script = `const { ensureStack } = await import(process.argv[1]);
      const stack = await ensureStack({ home: process.argv[2], programs: JSON.parse(process.argv[3]) });
      console.log(JSON.stringify([stack.pid, ...stack.children.map((child) => child.pid)]));`;
    const args = [
      '--input-type=module',
      '-e',
      script,
      builtFile('infra/stack/index.js'),
      home,
      JSON.stringify(under.programs),
    ];
    const [one, two] = await Promise.all([1, 2].map(() => promisify(execFile)(process.execPath, args)));
    expect(JSON.parse(one!.stdout)).toHaveLength(5);
    expect(one!.stdout).toBe(two!.stdout);
    expect(strangers(home, [])).toHaveLength(4);
  });

  it('chooses another port when the recorded one is taken, and the dependants learn it', async () => {
    const before = await under.up();
    await stopStack(home);
    const port = Number(before.nats.url.split(':').at(-1));
    const squatter = createServer().listen(port, '127.0.0.1');
    await once(squatter, 'listening');
    const after = await under.up();
    squatter.close();
    expect(after.nats.url).not.toBe(before.nats.url);
    expect(after.temporal).toEqual(before.temporal);
    await (await connectNats(after, 'test')).close();
  });

  it('changes its pools while it runs', async () => {
    const before = await under.up();
    const wider = await setPools(home, [
      { name: 'local', count: 1, roles: ['trainer', 'rollout', 'reward'] },
      { name: 'extra', count: 2, roles: ['rollout'], threads: 1 },
    ]);
    expect(Object.keys(pids(wider))).toEqual(['temporal', 'nats', 'control', 'local-1', 'extra-1', 'extra-2']);
    expect(wider).toMatchObject({ pid: before.pid });
    expect(pids(wider)).toMatchObject(pids(before));
    expect(logTail(home, 'extra-2')).toContain('--name extra-2 --pool extra --roles rollout --threads 1');

    const removed = processOf(wider, 'local-1');
    const narrower = await setPools(home, [{ name: 'extra', count: 1, roles: ['rollout'], threads: 1 }]);
    expect(Object.keys(pids(narrower))).toEqual(['temporal', 'nats', 'control', 'extra-1']);
    expect(processOf(narrower, 'extra-1')).toEqual(processOf(wider, 'extra-1'));
    expect(isAlive(removed)).toBe(false);
  });

  it('takes over the files of a build whose NATS server had no accounts', async () => {
    const [temporalPort, natsPort] = (await freePorts(2)) as [number, number];
    const older = {
      temporalPort,
      natsPort,
      natsKey: newNatsKey(),
      natsSystemKey: newNatsKey(),
      payloadKey: newPayloadKey(),
    };
    const streams = join(home, 'stack/nats/jetstream/$G/streams/JOURNAL');
    mkdirSync(streams, { recursive: true });
    writeFileSync(join(home, 'stack/endpoints.json'), JSON.stringify(older));
    const nats = { url: `nats://127.0.0.1:${natsPort}`, key: older.natsKey, systemKey: older.natsSystemKey };
    const state = {
      pid: 1,
      startTime: '0',
      startedAt: 'then',
      build: 'older',
      phase: 'running',
      pools: [],
      children: [],
    };
    writeFileSync(
      join(home, 'stack/stack.json'),
      JSON.stringify({ ...state, temporal: { address: `127.0.0.1:${temporalPort}` }, nats }),
    );
    expect(await stackHealth(home)).toMatchObject({ state: 'down', nats: { url: nats.url, serving: false } });
    const stack = await under.up();
    expect([stack.nats.url, stack.temporal.payloadKey]).toEqual([nats.url, older.payloadKey]);
    await (await connectNats(stack, 'test')).close();
    expect(existsSync(streams)).toBe(false);
  });

  it('listens for other machines with TLS, and again for this one only', async () => {
    const before = await under.up();
    const [port] = (await freePorts(1)) as [number];
    const open = await ensureStack({ home, programs: under.programs, listen: { host: '127.0.0.1', port } });
    expect(open.nats.url).toBe(`nats://127.0.0.1:${port}`);
    const client = await connectNats(open, 'test');
    expect(client.info?.tls_required).toBe(true);
    await client.close();
    await expect(
      connectNats({ nats: { ...open.nats, ca: undefined } }, 'test', { timeoutMs: 0 }),
    ).rejects.toMatchObject({ code: 'NatsUnreachable', message: expect.stringMatching(/certificate/) });
    expect(await stackHealth(home)).toMatchObject({ state: 'up', problems: [] });
    expect(processOf(open, 'temporal')).toEqual(processOf(before, 'temporal'));
    expect(processOf(open, 'local-1')).not.toEqual(processOf(before, 'local-1'));

    await stopStack(home);
    expect((await under.up()).nats).toEqual(open.nats);
    const closed = await ensureStack({ home, programs: under.programs, listen: 'off' });
    expect(closed.nats).toMatchObject({ url: open.nats.url, credential: open.nats.credential });
    expect(closed.nats.ca).toBeUndefined();
    await (await connectNats(closed, 'test')).close();
  });

  it('refuses invalid pools with a reason', async () => {
    const twice: WorkerPool[] = [1, 2].map(() => ({ name: 'a', count: 1, roles: ['reward'] }));
    await expect(under.up(twice)).rejects.toMatchObject({
      code: 'InvalidInput',
      message: 'two worker pools have the name a',
    });
    await expect(under.up([{ name: 'a b', count: 1, roles: [] }])).rejects.toMatchObject({ code: 'InvalidInput' });
  });

  it('shows the last output of a child that dies at its start', async () => {
    under.useWorker(brokenProgram);
    await expect(under.up()).rejects.toMatchObject({
      code: 'StackFailed',
      message: expect.stringMatching(/local-1 .* died 3 times .*exit code 3[\s\S]*cannot find the model/),
    });
    expect((await stackHealth(home)).problems).toEqual([expect.stringContaining('local-1 is waiting')]);
  });

  it('says that set-up is missing', async () => {
    await expect(ensureStack({ home: join(home, 'empty'), programs: under.programs })).rejects.toMatchObject({
      code: 'InvalidInput',
      hint: 'npm run setup',
    });
  });

  it('keeps its secrets readable for the owner only', async () => {
    await under.up();
    const mode = (path: string): number => statSync(join(home, path)).mode & 0o777;
    expect(['stack', 'stack/stack.json', 'stack/nats.conf', 'stack/endpoints.json'].map(mode)).toEqual([
      0o700, 0o600, 0o600, 0o600,
    ]);
    expect(readFileSync(join(home, 'stack/nats.conf'), 'utf8')).toContain('listen: "127.0.0.1:');
  });
});
