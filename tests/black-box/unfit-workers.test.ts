// @module-tag long
/**
 * A worker that cannot do some work, beside one that can: the run continues, and `petrel status` shows the unmet need.
 */
import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../fault-proxy.ts';
import { type S3Server, startSeaweed } from '../s3-servers.ts';
import { PetrelUser, root } from './petrel.ts';
import { type SecondWorkerOptions, seenRun, seenWorker, startSecondWorker, until } from './second-worker.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-unfit-'));
const user = new PetrelUser();
const namespaces = spawnSync('unshare', ['-Urm', 'true']).status === 0;
const bubblewrap =
  Boolean(process.env['PETREL_NEEDS_SANDBOX']) || spawnSync('bwrap', ['--ro-bind', '/', '/', 'true']).status === 0;
/** Jobs other than scoring do not have these needs. */
const onlyScoring = ['MissingSecret', 'NoSandbox'];
const ended = ['completed', 'failed', 'paused', 'cancelled'];
/** A row whose data source chooses the scorer code. */
const program = {
  data_source: 'taco',
  prompt: '1+2=',
  reward_model: { style: 'rule', ground_truth: JSON.stringify({ inputs: [''], outputs: [''] }) },
};
let server: S3Server;
let proxy: FaultProxy;
let second: ChildProcess | undefined;

beforeAll(async () => {
  server = await startSeaweed(folder);
  server.use('unfit');
  proxy = await startFaultProxy(server.endpoint);
  const up = await user.petrelWith({ env: { AWS_ENDPOINT_URL: proxy.endpoint, TOKEN_OF_TEST: 'known' } }, 'up');
  expect(up.code, up.err).toBe(0);
  user.write('programs.jsonl', `${JSON.stringify(program)}\n`.repeat(8));
});
afterEach(async () => {
  if (second === undefined || second.exitCode !== null) return;
  const gone = once(second, 'exit');
  second.kill('SIGKILL');
  await gone;
  second = undefined;
});
afterAll(async () => {
  await user.remove();
  await proxy?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

/** A copy of the checkout under test whose build has another id. */
function otherBuild(): string {
  const copy = join(folder, 'other-build');
  mkdirSync(copy);
  for (const name of readdirSync(root)) {
    if (name === 'dist') cpSync(join(root, name), join(copy, name), { recursive: true });
    else symlinkSync(join(root, name), join(copy, name));
  }
  writeFileSync(join(copy, 'dist/build-id'), 'another-build');
  return copy;
}

/** Runs the worker's command with a file system of 1 MiB mounted at petrel's cache. */
const onFullDisk = (home: string) => [
  'unshare',
  '-Urm',
  'sh',
  '-c',
  `mkdir -p '${home}/cache' && mount -t tmpfs -o size=1m none '${home}/cache' && exec "$@"`,
  'sh',
];

interface Case {
  readonly what: string;
  readonly code: string;
  readonly recipe: Readonly<Record<string, object | string>>;
  readonly worker: () => Omit<SecondWorkerOptions, 'name'>;
}

const cases: readonly Case[] = [
  {
    what: 'without credentials',
    code: 'InvalidInput',
    recipe: { store: 's3://petrel-tests/unfit' },
    worker: () => ({
      env: {
        AWS_ACCESS_KEY_ID: undefined,
        AWS_SECRET_ACCESS_KEY: undefined,
        AWS_EC2_METADATA_DISABLED: 'true',
        HOME: folder,
      },
    }),
  },
  {
    what: 'without a secret',
    code: 'MissingSecret',
    recipe: { reward: { reward_kwargs: { token: 'env:TOKEN_OF_TEST' } } },
    worker: () => ({ env: { TOKEN_OF_TEST: undefined } }),
  },
  { what: 'without room', code: 'DiskFull', recipe: {}, worker: () => ({ within: onFullDisk(user.home) }) },
  {
    what: 'without a sandbox',
    code: 'NoSandbox',
    recipe: { data: { train_files: './programs.jsonl' }, reward: { scorer: null } },
    worker: () => ({ env: { PATH: folder } }),
  },
  { what: 'of the wrong build', code: 'WrongBuild', recipe: {}, worker: () => ({ checkout: otherBuild() }) },
];

describe.each(cases)('a worker $what beside a good one', ({ what, code, recipe, worker }) => {
  it.skipIf((what === 'without room' && !namespaces) || (what === 'without a sandbox' && !bubblewrap))(
    'does not disturb the run and shows the reason, and the run continues on the good worker',
    async () => {
      const name = what.split(' ').at(-1) ?? '';
      second = await startSecondWorker(user, { name: 'odd-1', ...worker() });
      // The good worker is stopped, so that the other worker is offered every job.
      const good = await seenWorker(user, 'local-1', () => true);
      process.kill(good.pid, 'SIGSTOP');
      try {
        user.recipe(`${name}.yaml`, recipe);
        const run = await user.petrel('run', `${name}.yaml`, '--name', name, '--detach');
        expect(run.code, run.err).toBe(0);
        const seen = await seenRun(
          user,
          name,
          ({ state, workers, queued }) =>
            ended.includes(state) ||
            (queued?.includes('odd-1') === true &&
              workers.some(({ worker, lastError }) => worker === 'odd-1' && lastError?.code === code)),
        );
        expect({ state: seen.state, reason: seen.reason }).toEqual({
          state: onlyScoring.includes(code) ? 'running' : 'queued',
          reason: undefined,
        });
        expect(seen.queued).toContain('odd-1');
        const text = (await user.petrel('status', name)).out;
        expect(text).toMatch(new RegExp(`odd-1 refuses .*${code}: `));
      } finally {
        process.kill(good.pid, 'SIGCONT');
      }
      const { state } = await seenRun(user, name, (now) => ended.includes(now.state));
      expect(state).toBe('completed');
    },
  );
});

describe('a control process that is started again while the store refuses it', () => {
  it('waits with a reason, and the run continues when it gets access', async () => {
    user.recipe('refused.yaml', {
      store: 's3://petrel-tests/unfit',
      trainer: { total_training_steps: 200, save_freq: 50 },
    });
    expect((await user.petrel('run', 'refused.yaml', '--name', 'refused', '--detach')).code).toBe(0);
    await seenRun(user, 'refused', ({ state }) => state === 'running');
    let refuses = true;
    const refusal = proxy.add({
      fault: { type: 'answer', status: 403, code: 'AccessDenied' },
      when: () => refuses,
      times: Number.POSITIVE_INFINITY,
    });
    const children = async () =>
      (await user.petrel('status', '--json')).json<{
        readonly stack: {
          readonly children: readonly { readonly name: string; readonly pid?: number; readonly state: string }[];
        };
      }>().stack.children;
    const before = (await children()).find(({ name }) => name === 'control');
    process.kill(before?.pid ?? 0, 'SIGKILL');
    await until('a control process', async () =>
      (await children()).find(({ name, pid, state }) => name === 'control' && pid !== before?.pid && state === 'ready'),
    );
    const fired = refusal.fired;
    await until('refusals', async () => (refusal.fired >= fired + 5 ? true : undefined));
    const seen = await seenRun(user, 'refused', ({ state, queued }) => ended.includes(state) || queued !== undefined);
    expect({ state: seen.state, reason: seen.reason }).toEqual({ state: 'running', reason: undefined });
    expect(seen.queued).toMatch(/opening the store: 403/);
    refuses = false;
    expect((await user.petrel('stop', 'refused')).code).toBe(0);
    const { state } = await seenRun(user, 'refused', (now) => ['stopped', ...ended].includes(now.state));
    expect(state).toBe('stopped');
  });
});
