// @module-tag long
/** Machines that join a stack over TLS on loopback: each is a process group with an empty home. */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FleetList } from '../../api/fleet/list.ts';
import type { Revoked } from '../../api/fleet/revoke.ts';
import type { MachineStatus } from '../../api/runs/machine-status.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { newJoinFile } from '../../infra/fleet/join-file.ts';
import { packageRoot } from '../../infra/home.ts';
import { newAuthority } from '../../infra/nats/access/authority.ts';
import { freePorts } from '../../infra/ports.ts';
import { poll } from '../../infra/poll.ts';
import { ensureStack } from '../../infra/stack/index.ts';
import { needRecord } from '../../log/objects/records.ts';
import { runWords } from '../cli.ts';
import { startMachine } from '../joined-machine.ts';
import type { JoinedMachine } from '../joined-machine.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';
import { patienceMs } from '../patience.ts';

const loop = new LoopUnderTest();
const bounded = { everyMs: 50, timeoutMs: patienceMs };
const machines: JoinedMachine[] = [];
let homes = 0;

beforeAll(async () => {
  const [port] = (await freePorts(1)) as [number];
  const trainer = [{ name: 'train', count: 1, roles: ['trainer' as const], threads: 1 }];
  await ensureStack({ home: loop.home, workers: trainer, listen: { host: '127.0.0.1', port } });
  await loop.up(trainer);
});
afterEach(async () => {
  for (const machine of machines.splice(0)) await machine.kill();
});
afterAll(() => loop.remove());

const token = async (...words: string[]): Promise<JoinFile> =>
  (await runWords(loop.home, ['fleet', 'token', '--pool', 'lab', '--json', ...words])).json();
const status = async (): Promise<MachineStatus> => (await runWords(loop.home, ['status', '--json'])).json();

/** A machine with nothing but Node and the command. */
function machine(file: object): JoinedMachine {
  const home = newHome();
  const path = join(home, 'join.json');
  writeFileSync(path, JSON.stringify(file));
  return started(home, [join(packageRoot(), 'cli/bin.mjs'), 'worker', '--join', path, '--threads', '1']);
}

function newHome(): string {
  const home = join(loop.home, `machine-${++homes}`);
  mkdirSync(home, { mode: 0o700 });
  return home;
}

function started(home: string, words: readonly string[], PATH?: string): JoinedMachine {
  const joined = startMachine({ home, words, PATH });
  machines.push(joined);
  return joined;
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
  const lab = (await status()).workers.find(({ instance }) => instance.startsWith('lab-'));
  expect(lab?.tokensPerSecond).toBeGreaterThan(0);
  const listed = (await runWords(loop.home, ['fleet', 'ls', '--json'])).json<FleetList>().machines;
  expect(listed.map(({ tokensPerSecond }) => tokensPerSecond)).toEqual([lab?.tokensPerSecond]);
  expect((await runWords(loop.home, ['fleet', 'ls'])).out).toMatch(/ JOBS +TOKENS\/S/);
  joined.process.kill('SIGTERM');
  expect(await joined.ended, joined.said()).toBe(0);
});

describe('a machine that has Node and nothing else', () => {
  /** `petrel fleet token --program` for a new machine. */
  async function programFor(home: string, ...words: string[]): Promise<string> {
    const path = join(home, 'join-lab.mjs');
    await runWords(loop.home, ['fleet', 'token', '--pool', 'lab', '--program', path, ...words]);
    return path;
  }

  it('joins with one program, and works', async () => {
    const home = newHome();
    const program = await programFor(home);
    expect([statSync(program).mode & 0o777, readdirSync(home)]).toEqual([0o600, ['join-lab.mjs']]);
    const joined = started(home, [program, '--threads', '1'], join(home, 'empty'));
    const isThere = async () =>
      (await status()).workers.some(({ instance, state }) => /^lab-/.test(instance) && state === 'ready');
    expect(await poll(isThere, bounded), joined.said()).toBe(true);
    const run = await loop.start({ trainer: { total_training_steps: 2 } });
    await loop.reaches(run, 'completed');
    expect([...(await writersOf(run))]).toEqual([expect.stringMatching(/^lab-[0-9a-f]{12}\/w1$/)]);
    expect(readdirSync(home).sort()).toEqual(['.petrel', 'join-lab.mjs']);
    joined.process.kill('SIGTERM');
    expect(await joined.ended, joined.said()).toBe(0);
  });

  it('is told what is wrong with its token or with what was typed', async () => {
    const home = newHome();
    const program = await programFor(home);
    const wrong = started(home, [program, '--threads', 'many']);
    expect([await wrong.ended, wrong.said()]).toEqual([
      2,
      expect.stringContaining('--threads: expected a whole number from 1 to 1024, got many'),
    ]);
    const text = readFileSync(program, 'utf8');
    writeFileSync(program, text.replace(/"expires":"[^"]+"/, '"expires":"2020-01-01T00:00:00.000Z"'));
    const late = started(home, [program]);
    expect([await late.ended, late.said().replaceAll(/\s+/g, ' ')]).toEqual([
      2,
      expect.stringMatching(
        /expected a token that is still valid, got one of the pool lab that expired at 2020.* petrel fleet token/,
      ),
    ]);
  });

  it('gets a program that replaces no file', async () => {
    const home = newHome();
    const program = await programFor(home);
    await expect(programFor(home)).rejects.toThrow(`--program: expected the path of a new file, got ${program}`);
  });
});

it('vanishes with all its processes, and another machine finishes the run', async () => {
  const file = await token();
  const first = machine(file);
  expect(await poll(() => first.said().includes('joined'), bounded)).toBe(true);
  const run = await loop.start({ trainer: { total_training_steps: 8 } });
  await loop.until(run, 'an iteration', async () => (await loop.iterations(run)).length > 0);
  await first.kill();
  const instanceOf = ({ said }: JoinedMachine) => /joined \S+ as (lab-[0-9a-f]{12})/.exec(said())?.[1];
  // Before the server has noticed the loss, a machine that joins is one more, and replaces none.
  await loop.said(run, new RegExp(`warn control: lost: worker ${instanceOf(first)}/w1 `));
  const second = machine(file);
  await loop.reaches(run, 'completed');
  expect(await writersOf(run)).toEqual(new Set([`${instanceOf(first)}/w1`, `${instanceOf(second)}/w1`]));
  await loop.said(run, new RegExp(`control: replaced: worker ${instanceOf(first)}/w1 by ${instanceOf(second)}/w1`));
});

it('asks again as soon as another control process has started, and so learns of another build', {
  tags: ['long'],
}, async () => {
  const joined = machine(await token());
  const instance = () => /joined \S+ as (lab-[0-9a-f]{12})/.exec(joined.said())?.[1];
  const untilOf = async () =>
    (await runWords(loop.home, ['fleet', 'ls', '--json']))
      .json<FleetList>()
      .machines.find((one) => one.instance === instance() && one.state === 'present')?.until;
  expect(await poll(async () => (await untilOf()) !== undefined, bounded), joined.said()).toBe(true);
  const before = await untilOf();
  await kill(loop.process('control'));
  // By itself it would ask half a minute after it has joined.
  const again = async () => ((await untilOf()) ?? before) !== before;
  expect(await poll(again, { everyMs: 50, timeoutMs: patienceMs })).toBe(true);
});

describe('what is revoked', () => {
  const fleet = async () => (await runWords(loop.home, ['fleet', 'ls', '--json'])).json<FleetList>();
  const instanceOf = ({ said }: JoinedMachine) => /joined \S+ as (lab-[0-9a-f]{12})/.exec(said())?.[1] ?? '';
  const isPresent = async (instance: string) =>
    (await fleet()).machines.some((one) => one.instance === instance && one.state === 'present');

  it('a machine: it is cut off at once, says why and leaves, and another one finishes the run', async () => {
    const [first, second] = [machine(await token()), machine(await token())];
    expect(await poll(() => instanceOf(first) !== '' && instanceOf(second) !== '', bounded)).toBe(true);
    const [out, stays] = [instanceOf(first), instanceOf(second)];
    expect(await poll(async () => (await isPresent(out)) && (await isPresent(stays)), bounded)).toBe(true);
    const run = await loop.start({ trainer: { total_training_steps: 8 } });
    await loop.until(run, 'an iteration', async () => (await loop.iterations(run)).length > 0);
    const { machines: revoked } = (await runWords(loop.home, ['fleet', 'revoke', out, '--json'])).json<Revoked>();
    expect(revoked).toEqual([out]);
    expect(await first.ended, first.said()).not.toBe(0);
    expect(first.said().replaceAll(/\s+/g, ' ')).toContain(`this machine, ${out}, was taken out of the pool lab`);
    await loop.reaches(run, 'completed');
    expect([...(await writersOf(run))]).toContain(`${stays}/w1`);
    expect((await fleet()).machines.find(({ instance }) => instance === out)?.state).toBe('revoked');
    const isTold = async () => (await status()).left.some(({ code, pool }) => code === 'Revoked' && pool === 'lab');
    expect(await poll(isTold, bounded)).toBe(true);
    expect(await isPresent(stays)).toBe(true);
  });

  it('a token: nobody joins with it any more, also after the server has started again; another token still works', {
    tags: ['long'],
  }, async () => {
    const [file, other] = [await token(), await token()];
    expect((await runWords(loop.home, ['fleet', 'revoke', file.id, '--json'])).json<Revoked>().tokens).toEqual([
      file.id,
    ]);
    const refused = async () => {
      const late = machine(file);
      expect(await late.ended).not.toBe(0);
      expect(late.said()).toMatch(/does not accept this token/);
    };
    await refused();
    const server = loop.process('nats').pid;
    await kill(loop.process('nats'));
    expect(await poll(() => (loop.processIfThere('nats')?.pid ?? server) !== server, bounded)).toBe(true);
    await refused();
    const welcome = machine(other);
    expect(await poll(() => instanceOf(welcome) !== '', bounded), welcome.said()).toBe(true);
  });

  it('must be known', async () => {
    await token('--pool', 'scorers');
    await expect(runWords(loop.home, ['fleet', 'revoke', 'scorer'])).rejects.toMatchObject({
      message: 'expected a machine, a token or a pool of this stack, got "scorer"',
      hint: expect.stringContaining('petrel fleet revoke scorers'),
    });
  });
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
  await expect(token('--roles', 'critic')).rejects.toThrow('expected some of trainer, rollout, reward, got "critic"');
  await expect(token('--pool', 'A b')).rejects.toThrow('--pool: expected small letters, digits and -');
  await expect(token('--ttl', 'soon')).rejects.toThrow('--ttl: expected a duration');
  expect(readFileSync(join(loop.home, 'stack/nats.conf'), 'utf8')).toContain('tls {');
});
