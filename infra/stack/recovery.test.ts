import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  bounded,
  kill,
  parentProgram,
  pids,
  processOf,
  StackUnderTest,
  without,
} from '../../tests/stack-under-test.ts';
import { connectNats } from '../nats/connection.ts';
import { connectTemporalClient } from '../temporal/connection.ts';
import { poll } from '../poll.ts';
import { strangers } from './adoption.ts';
import { keepStack, readStack, stopStack } from './index.ts';
import { identify, isAlive, waitForExit } from './process.ts';

let under: StackUnderTest;
let home: string;
beforeEach(() => {
  under = new StackUnderTest();
  home = under.home;
});
afterEach(() => under.remove());

async function reconnection(client: NatsConnection): Promise<void> {
  for await (const { type } of client.status()) if (type === 'reconnect') return;
}

describe('the local stack, when something dies,', () => {
  it('adopts the children of a killed supervisor and starts none twice', async () => {
    const before = await under.up();
    await kill(before);
    expect(readStack(home)).toBeUndefined();
    const after = await under.up();
    expect(after.pid).not.toBe(before.pid);
    expect(pids(after)).toEqual(pids(before));
    expect(strangers(home, [])).toHaveLength(4);

    const worker = processOf(after, 'local-1');
    await kill(worker); // the death of an adopted process is noticed too
    await under.replaced('local-1', worker);
  });

  it('restarts exactly the processes that died while there was no supervisor', async () => {
    const before = await under.up();
    await kill(before);
    await kill(processOf(before, 'nats'));
    const after = await under.up();
    expect(pids(without(after, 'nats'))).toEqual(pids(without(before, 'nats')));
    expect(processOf(after, 'nats').pid).not.toBe(processOf(before, 'nats').pid);
    expect(after.nats).toEqual(before.nats);
  });

  it('restarts a killed server on the same port, and a client reconnects', async () => {
    const stack = await under.up();
    const client = await connectNats(stack, 'test');
    const reconnected = reconnection(client);
    const before = processOf(stack, 'nats');
    await kill(before);
    const after = await under.replaced('nats', before);
    expect(after.nats).toEqual(stack.nats);
    expect(after.children.find(({ name }) => name === 'nats')).toMatchObject({ restarts: 1, lastExit: 'SIGKILL' });
    await reconnected;
    await client.flush();
    await client.close();
  });

  it('gives a dead server another port when its own is taken, and restarts the processes that used the old one', async () => {
    const before = await under.up();
    await kill(before);
    await kill(processOf(before, 'nats'));
    const squatter = createServer().listen(Number(before.nats.url.split(':').at(-1)), '127.0.0.1');
    await once(squatter, 'listening');
    const after = await under.up();
    squatter.close();
    expect(after.nats.url).not.toBe(before.nats.url);
    expect(processOf(after, 'temporal')).toEqual(processOf(before, 'temporal'));
    expect(processOf(after, 'local-1')).not.toEqual(processOf(before, 'local-1'));
    await (await connectNats(after, 'test')).close();
  });

  it('keeps the database of a killed Temporal server', async () => {
    const stack = await under.up();
    const client = await connectTemporalClient(stack);
    await client.workflow.start('nobodyPolls', { taskQueue: 'none', workflowId: 'survivor' });
    const before = processOf(stack, 'temporal');
    await kill(before);
    await under.replaced('temporal', before);
    expect((await client.workflow.getHandle('survivor').describe()).status.name).toBe('RUNNING');
    await client.connection.close();
  });

  it('goes down when the supervisor is dead, including processes that its children started', async () => {
    under.useWorker(parentProgram);
    const stack = await under.up();
    const marked = await poll(() => (strangers(home, []).length === 5 ? strangers(home, []) : undefined), bounded);
    expect(marked).toHaveLength(5);
    await kill(stack);
    expect((await stopStack(home)).stopped.sort()).toEqual(['control', 'local-1', 'nats', 'temporal']);
    expect(marked!.filter(isAlive)).toEqual([]);
  });

  it('ends the processes that a dead child had started', async () => {
    under.useWorker(parentProgram);
    const stack = await under.up();
    const worker = processOf(stack, 'local-1');
    const others = without(stack, 'local-1').children.map(({ name }) => processOf(stack, name));
    const helper = await poll(() => strangers(home, others).find(({ pid }) => pid !== worker.pid), bounded);
    await kill(worker);
    expect(await waitForExit(helper!, 30_000)).toBe(true);
  });

  it('does not trust a recycled pid', async () => {
    const before = await under.up();
    await stopStack(home);
    // Another process has the supervisor's pid, and another one a child's.
    const own = identify(process.pid)!;
    const forged = { ...before, pid: own.pid, children: before.children.map((child) => ({ ...child, pid: own.pid })) };
    writeFileSync(join(home, 'stack/stack.json'), JSON.stringify(forged));
    expect(readStack(home)).toBeUndefined();
    const after = await under.up();
    expect(Object.values(pids(after))).not.toContain(own.pid);
  });

  it('gets its supervisor restarted by the control process', async () => {
    const before = await under.up();
    const ending = new AbortController();
    const keeping = keepStack(home, ending.signal, () => {}, 50);
    await kill(before);
    const after = await poll(() => readStack(home), bounded);
    expect(after && pids(after)).toEqual(pids(before));
    ending.abort();
    await keeping;
  });

  it('stays down when it is stopped while the control process starts a supervisor again', async () => {
    const before = await under.up();
    await kill(before);
    const ending = new AbortController();
    const started: string[] = [];
    const keeping = keepStack(home, ending.signal, (line) => started.push(line));
    expect(started).toHaveLength(1); // that supervisor boots, and has no lock yet
    const booting = identify(Number(/process (\d+)/.exec(started[0] ?? '')?.[1]));
    await stopStack(home);
    ending.abort();
    await keeping;
    // It saw that the stack was stopped, found the lock taken, or was ended.
    if (booting !== undefined) expect(await waitForExit(booting, bounded.timeoutMs)).toBe(true);
    expect(strangers(home, [])).toEqual([]);
    expect(readStack(home)).toBeUndefined();
  });

  it('is taken over by a new build: petrel’s processes are replaced, the servers stay', async () => {
    const before = await under.up();
    const path = join(home, 'stack/stack.json');
    await kill(before);
    // The file that a supervisor of another build would have left.
    const children = before.children.map((child) =>
      child.kind === 'worker' ? { ...child, fingerprint: 'older' } : child,
    );
    writeFileSync(path, JSON.stringify({ ...before, children }));
    const after = await under.up();
    expect(processOf(after, 'temporal')).toEqual(processOf(before, 'temporal'));
    expect(processOf(after, 'local-1')).not.toEqual(processOf(before, 'local-1'));
    expect(isAlive(processOf(before, 'local-1'))).toBe(false);
  });
});
