import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryHome } from '../../tests/servers.ts';
import type { TemporaryHome } from '../../tests/servers.ts';
import { builtFile } from '../home.ts';
import { connectNats } from '../nats/connection.ts';
import { connectTemporalClient } from '../temporal/connection.ts';
import { poll } from '../wait.ts';
import { strangers } from './adoption.ts';
import { ensureStack, keepStack, logTail, readStack, setPools, stackHealth, stopStack } from './index.ts';
import type { StackInfo, WorkerPool } from './index.ts';
import { identify, isAlive, signalProcess, waitForExit } from './process.ts';
import type { ProcessIdentity } from './process.ts';
import { isStackReady } from './read.ts';

const bounded = { everyMs: 25, timeoutMs: 30_000 };

/** Stands in for the control and worker processes: says that it is ready, leaves on SIGTERM, and takes orders by its flags. */
const childProgram = `
import { renameSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
const ready = process.env.PETREL_READY_FILE;
console.log('here', process.pid, process.argv.slice(2).join(' '));
const stop = setInterval(() => {}, 1000);
process.on('SIGTERM', () => clearInterval(stop));
writeFileSync(ready + '.tmp', String(process.pid));
renameSync(ready + '.tmp', ready);
`;
/** Starts a helper in a group of its own, which would outlive it. */
const parentProgram = `${childProgram}
spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore', detached: true }).unref();
`;
const brokenProgram = `console.error('cannot find the model'); process.exit(3);`;

let temporary: TemporaryHome;
let home: string;
let programs: { control: string; worker: string };

beforeEach(() => {
  temporary = temporaryHome();
  home = temporary.home;
  programs = { control: program('control', childProgram), worker: program('worker', childProgram) };
});

afterEach(async () => {
  await stopStack(home);
  expect(strangers(home, [])).toEqual([]);
  temporary.remove();
});

function program(name: string, text: string): string {
  mkdirSync(join(home, 'programs'), { recursive: true });
  const path = join(home, 'programs', `${name}.mjs`);
  writeFileSync(path, text);
  return path;
}

const up = (workers?: readonly WorkerPool[]): Promise<StackInfo> => ensureStack({ home, programs, ...(workers ? { workers } : {}) });

function processOf(stack: StackInfo, name: string): ProcessIdentity {
  const child = stack.children.find((one) => one.name === name);
  if (child?.pid === undefined || child.startTime === undefined) throw new Error(`${name} does not run: ${JSON.stringify(child)}`);
  return { pid: child.pid, startTime: child.startTime };
}

const pids = (stack: StackInfo): Record<string, number | undefined> => Object.fromEntries(stack.children.map(({ name, pid }) => [name, pid]));

async function kill(process: ProcessIdentity): Promise<void> {
  expect(signalProcess(process, 'SIGKILL')).toBe(true);
  expect(await waitForExit(process, 5_000)).toBe(true);
}

/** The stack once it is whole again and `name` is another process than before. */
async function replaced(name: string, before: ProcessIdentity): Promise<StackInfo> {
  const stack = await poll(() => {
    const now = readStack(home);
    return now && isStackReady(now) && processOf(now, name).pid !== before.pid ? now : undefined;
  }, bounded);
  if (!stack) throw new Error(`${name} was not replaced: ${JSON.stringify(readStack(home), null, 2)}\n${logTail(home, 'supervisor', 40)}`);
  return stack;
}

async function reconnection(client: NatsConnection): Promise<void> {
  for await (const { type } of client.status()) if (type === 'reconnect') return;
}

describe('the local stack', () => {
  it('comes up whole, serves Temporal and NATS, and leaves no process behind', async () => {
    const lines: string[] = [];
    const stack = await ensureStack({ home, programs, onProgress: (line) => lines.push(line) });
    expect(stack.children.map(({ name, state }) => [name, state])).toEqual(['temporal', 'nats', 'control', 'local-1'].map((name) => [name, 'ready']));
    expect(lines).toContain('temporal: ready');

    const client = await connectTemporalClient(stack);
    const { namespaceInfo, config } = await client.connection.workflowService.describeNamespace({ namespace: 'default' });
    expect([namespaceInfo?.name, Number(config?.workflowExecutionRetentionTtl?.seconds)]).toEqual(['default', 30 * 24 * 3600]);
    await client.connection.close();
    const nats = await connectNats(stack, 'test');
    expect(nats.info?.jetstream).toBe(true);
    await nats.close();
    await expect(connectNats({ nats: { url: stack.nats.url, token: 'wrong' } }, 'thief', { timeoutMs: 0 })).rejects.toMatchObject({ code: 'NatsUnreachable' });
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
    const args = ['--input-type=module', '-e', script, builtFile('infra/stack/index.js'), home, JSON.stringify(programs)];
    const [one, two] = await Promise.all([1, 2].map(() => promisify(execFile)(process.execPath, args)));
    expect(JSON.parse(one!.stdout)).toHaveLength(5);
    expect(one!.stdout).toBe(two!.stdout);
    expect(strangers(home, [])).toHaveLength(4);
  });

  it('adopts the children of a killed supervisor and doubles none', async () => {
    const before = await up();
    await kill(before);
    expect(readStack(home)).toBeUndefined();
    const after = await up();
    expect(after.pid).not.toBe(before.pid);
    expect(pids(after)).toEqual(pids(before));
    expect(strangers(home, [])).toHaveLength(4);

    const worker = processOf(after, 'local-1');
    await kill(worker); // the death of an adopted one is seen, too
    await replaced('local-1', worker);
  });

  it('restarts what died while no supervisor lived, and only that', async () => {
    const before = await up();
    await kill(before);
    await kill(processOf(before, 'nats'));
    const after = await up();
    expect(pids({ ...after, children: after.children.filter(({ name }) => name !== 'nats') })).toEqual(
      pids({ ...before, children: before.children.filter(({ name }) => name !== 'nats') }),
    );
    expect(processOf(after, 'nats').pid).not.toBe(processOf(before, 'nats').pid);
    expect(after.nats).toEqual(before.nats);
  });

  it('restarts a killed server on the same port, and a client reconnects', async () => {
    const stack = await up();
    const client = await connectNats(stack, 'test');
    const reconnected = reconnection(client);
    const before = processOf(stack, 'nats');
    await kill(before);
    const after = await replaced('nats', before);
    expect(after.nats).toEqual(stack.nats);
    expect(after.children.find(({ name }) => name === 'nats')).toMatchObject({ restarts: 1, lastExit: 'SIGKILL' });
    await reconnected;
    await client.flush();
    await client.close();
  });

  it('keeps the database of a killed Temporal server', async () => {
    const stack = await up();
    const client = await connectTemporalClient(stack);
    await client.workflow.start('nobodyPolls', { taskQueue: 'none', workflowId: 'survivor' });
    const before = processOf(stack, 'temporal');
    await kill(before);
    await replaced('temporal', before);
    expect((await client.workflow.getHandle('survivor').describe()).status.name).toBe('RUNNING');
    await client.connection.close();
  });

  it('goes down when the supervisor is dead, helpers of its children included', async () => {
    programs = { ...programs, worker: program('worker', parentProgram) };
    const stack = await up();
    const marked = await poll(() => (strangers(home, []).length === 5 ? strangers(home, []) : undefined), bounded);
    expect(marked).toHaveLength(5);
    await kill(stack);
    expect((await stopStack(home)).stopped.sort()).toEqual(['control', 'local-1', 'nats', 'temporal']);
    expect(marked!.filter(isAlive)).toEqual([]);
  });

  it('ends the helpers of a child that died', async () => {
    programs = { ...programs, worker: program('worker', parentProgram) };
    const stack = await up();
    const worker = processOf(stack, 'local-1');
    const helper = await poll(() => strangers(home, stack.children.map(({ name }) => processOf(stack, name)).filter(({ pid }) => pid !== worker.pid)).find(({ pid }) => pid !== worker.pid), bounded);
    await kill(worker);
    expect(await waitForExit(helper!, 30_000)).toBe(true);
  });

  it('chooses another port when the recorded one is taken, and tells its dependants', async () => {
    const before = await up();
    await stopStack(home);
    const port = Number(before.nats.url.split(':').at(-1));
    const squatter = createServer().listen(port, '127.0.0.1');
    await once(squatter, 'listening');
    const after = await up();
    squatter.close();
    expect(after.nats.url).not.toBe(before.nats.url);
    expect(after.temporal).toEqual(before.temporal);
    await (await connectNats(after, 'test')).close();
  });

  it('changes its pools while it runs', async () => {
    const before = await up();
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

  it('refuses pools that cannot be, and says why', async () => {
    const twice: WorkerPool[] = [1, 2].map(() => ({ name: 'a', count: 1, roles: ['reward'] }));
    await expect(up(twice)).rejects.toMatchObject({ code: 'InvalidInput', message: 'two worker pools are called a' });
    await expect(up([{ name: 'a b', count: 1, roles: [] }])).rejects.toMatchObject({ code: 'InvalidInput' });
  });

  it('says what a child that dies at its start last wrote', async () => {
    programs = { ...programs, worker: program('worker', brokenProgram) };
    await expect(up()).rejects.toMatchObject({ code: 'StackFailed', message: expect.stringMatching(/local-1 .* died 3 times .*exit code 3[^]*cannot find the model/) });
    expect((await stackHealth(home)).problems).toEqual([expect.stringContaining('local-1 is waiting')]);
  });

  it('says that set-up is missing', async () => {
    await expect(ensureStack({ home: join(home, 'empty'), programs })).rejects.toMatchObject({ code: 'InvalidInput', hint: 'npm run setup' });
  });

  it('does not believe a recycled pid', async () => {
    const before = await up();
    await stopStack(home);
    // Another process has the supervisor's pid, and another one a child's.
    const own = identify(process.pid)!;
    const forged = { ...before, pid: own.pid, children: before.children.map((child) => ({ ...child, pid: own.pid })) };
    writeFileSync(join(home, 'stack/stack.json'), JSON.stringify(forged));
    expect(readStack(home)).toBeUndefined();
    const after = await up();
    expect(Object.values(pids(after))).not.toContain(own.pid);
  });

  it('gets its supervisor back from the control process', async () => {
    const before = await up();
    const ending = new AbortController();
    const keeping = keepStack(home, ending.signal, () => {}, 50);
    await kill(before);
    const after = await poll(() => readStack(home), bounded);
    expect(after && pids(after)).toEqual(pids(before));
    ending.abort();
    await keeping;
  });

  it('hands over to a new build: petrel’s processes are replaced, the servers stay', async () => {
    const before = await up();
    const path = join(home, 'stack/stack.json');
    await kill(before);
    // As a supervisor of another build would have left it.
    const children = before.children.map((child) => (child.kind === 'worker' ? { ...child, fingerprint: 'older' } : child));
    writeFileSync(path, JSON.stringify({ ...before, children }));
    const after = await up();
    expect(processOf(after, 'temporal')).toEqual(processOf(before, 'temporal'));
    expect(processOf(after, 'local-1')).not.toEqual(processOf(before, 'local-1'));
    expect(isAlive(processOf(before, 'local-1'))).toBe(false);
  });

  it('keeps its secrets to the owner', async () => {
    await up();
    const mode = (path: string): number => statSync(join(home, path)).mode & 0o777;
    expect(['stack', 'stack/stack.json', 'stack/nats.conf', 'stack/endpoints.json'].map(mode)).toEqual([0o700, 0o600, 0o600, 0o600]);
    expect(readFileSync(join(home, 'stack/nats.conf'), 'utf8')).toContain('listen: "127.0.0.1:');
  });
});
