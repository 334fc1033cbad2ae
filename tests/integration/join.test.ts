/** Machines that join a stack over TLS on loopback: each is a process group with an empty home. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { MachineStatus } from '../../api/runs/machine-status.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { newJoinFile } from '../../infra/fleet/join-file.ts';
import { packageRoot } from '../../infra/home.ts';
import { newAuthority } from '../../infra/nats/authority.ts';
import { freePorts } from '../../infra/ports.ts';
import { poll } from '../../infra/poll.ts';
import { ensureStack } from '../../infra/stack/index.ts';
import { needRecord } from '../../infra/store/records.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const bounded = { everyMs: 50, timeoutMs: 60_000 };
const machines: ChildProcess[] = [];
let homes = 0;

beforeAll(async () => {
  const [port] = (await freePorts(1)) as [number];
  const trainer = [{ name: 'train', count: 1, roles: ['trainer' as const], threads: 1 }];
  await ensureStack({ home: loop.home, workers: trainer, listen: { host: '127.0.0.1', port } });
  await loop.up(trainer);
});
afterEach(async () => {
  for (const machine of machines.splice(0)) await killed(machine);
});
afterAll(() => loop.remove());

const token = async (...words: string[]): Promise<JoinFile> =>
  (await runWords(loop.home, ['fleet', 'token', '--pool', 'lab', '--json', ...words])).json();
const status = async (): Promise<MachineStatus> => (await runWords(loop.home, ['status', '--json'])).json();

interface Machine {
  readonly process: ChildProcess;
  readonly ended: Promise<number | null>;
  said(): string;
}

/** A machine with nothing but Node and the command, in a process group of its own. */
function machine(file: object): Machine {
  const home = join(loop.home, `machine-${++homes}`);
  mkdirSync(home, { mode: 0o700 });
  const path = join(home, 'join.json');
  writeFileSync(path, JSON.stringify(file));
  const { PATH } = process.env;
  const words = [join(packageRoot(), 'cli/bin.mjs'), 'worker', '--join', path, '--threads', '1'];
  const child = spawn(process.execPath, words, {
    cwd: home,
    env: { PATH, HOME: home, PETREL_HOME: join(home, 'petrel'), NO_COLOR: '1' },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  machines.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part) => void (text += part));
  return { process: child, ended: once(child, 'close').then(([code]) => code as number | null), said: () => text };
}

/** All processes of the machine, at once. */
async function killed({ pid, exitCode, signalCode }: ChildProcess): Promise<void> {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  process.kill(-pid, 'SIGKILL');
  await poll(() => !isThere(pid), bounded);
}

function isThere(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}

/** The workers that did its rollout and reward jobs. */
async function writersOf({ runId }: StartedRun): Promise<ReadonlySet<string>> {
  const writers = new Set<string>();
  for (const name of await loop.store.children(keys.results(runId))) {
    const { record } = await needRecord(loop.store, keys.results(runId) + name, resultRecord);
    if (record.stage === 'rollout' || record.stage === 'reward') writers.add(record.writer.process);
  }
  return writers;
}

it('fetches the build of the stack, works, and leaves when it is told to', async () => {
  const joined = machine(await token());
  const run = await loop.start({ trainer: { total_training_steps: 2 } });
  await loop.reaches(run, 'completed');
  expect([...(await writersOf(run))]).toEqual([expect.stringMatching(/^lab-[0-9a-f]{12}\/w1$/)]);
  expect(joined.said()).toMatch(/joined \S+ as lab-[0-9a-f]{12}, pool lab, build [0-9a-f]{12}/);
  expect((await status()).workers.map(({ instance, roles }) => [instance.split('-')[0], roles])).toContainEqual([
    'lab',
    ['rollout', 'reward'],
  ]);
  joined.process.kill('SIGTERM');
  expect(await joined.ended, joined.said()).toBe(0);
});

it('vanishes with all its processes, and another machine finishes the run', async () => {
  const file = await token();
  const first = machine(file);
  expect(await poll(() => first.said().includes('joined'), bounded)).toBe(true);
  const run = await loop.start({ trainer: { total_training_steps: 8 } });
  await loop.until(run, 'an iteration', async () => (await loop.iterations(run)).length > 0);
  await killed(first.process);
  const second = machine(file);
  await loop.reaches(run, 'completed');
  const instanceOf = ({ said }: Machine) => /joined \S+ as (lab-[0-9a-f]{12})/.exec(said())?.[1];
  expect(await writersOf(run)).toEqual(new Set([`${instanceOf(first)}/w1`, `${instanceOf(second)}/w1`]));
});

it.each<readonly [string, string, (file: JoinFile) => Promise<object>, RegExp]>([
  ['that is no file of a token', '', async () => ({ a: 1 }), /expected a join file, got something else/],
  [
    'whose token has expired',
    '',
    async (file) => ({ ...file, expires: '2020-01-01T00:00:00.000Z' }),
    /expected a token that is still valid, got one of the pool lab that expired at 2020/,
  ],
  [
    'with a token of another stack',
    'TokenRefused',
    async (file) =>
      newJoinFile({ ...file, account: (await newAuthority()).workers, expiresAt: new Date(Date.now() + 1e6) }),
    /does not accept this token of the pool lab: expected one that it has made and that has not expired/,
  ],
  [
    'for a store that the stack does not know',
    'InvalidInput',
    async (file) => ({ ...file, store: 'file:///nowhere/store' }),
    /expected a store of this stack, got file:\/\/\/nowhere\/store, which the stack does not know/,
  ],
])('one %s says so with what to type, and leaves', async (_, code, change, sentence) => {
  const refused = machine(await change(await token()));
  expect(await refused.ended).not.toBe(0);
  expect(refused.said().replaceAll(/\s+/g, ' ')).toMatch(sentence);
  expect(refused.said()).toMatch(/fleet token/);
  if (code !== '')
    expect(
      await poll(async () => (await status()).left.some((left) => left.code === code && left.pool === 'lab'), bounded),
    ).toBe(true);
});

it('one that finds other bytes under the digest of its build says so, leaves, and is on the status', async () => {
  const file = await token();
  const [build] = (await loop.store.list('builds/')).filter((key) => key.endsWith('.json'));
  const list = JSON.parse(new TextDecoder().decode(await loop.store.get(build ?? ''))) as {
    files: { digest: string }[];
  };
  const key = keys.buildFile(list.files[0]?.digest ?? '');
  const bytes = (await loop.store.get(key)) ?? new Uint8Array();
  await loop.store.remove(key);
  await loop.store.put(key, new TextEncoder().encode('other'));
  const refused = machine(file);
  expect(await refused.ended).not.toBe(0);
  expect(refused.said().replaceAll(/\s+/g, ' ')).toMatch(/expected bytes with the digest [0-9a-f]{64}, got/);
  expect(await poll(async () => (await status()).left.some(({ code }) => code === 'WrongBuild'), bounded)).toBe(true);
  await loop.store.remove(key);
  await loop.store.put(key, bytes);
});

it('a token needs a stack that listens, a known role and a name', async () => {
  await expect(token('--roles', 'trainer')).rejects.toThrow('--roles: expected some of rollout, reward, got "trainer"');
  await expect(token('--pool', 'A b')).rejects.toThrow('--pool: expected small letters, digits and -');
  await expect(token('--ttl', 'soon')).rejects.toThrow('--ttl: expected a duration');
  expect(readFileSync(join(loop.home, 'stack/nats.conf'), 'utf8')).toContain('tls {');
});
