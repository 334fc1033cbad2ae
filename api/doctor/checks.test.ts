/** What `petrel doctor` finds in a home without a stack: on real stores, with damage as a disk does it. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { floorVariable } from '../../log/objects/free-space.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { appendStatus } from '../../log/run/status.ts';
import { rememberStore } from '../../infra/store/places.ts';
import { cliHome } from '../../tests/cli.ts';
import type { CliHome } from '../../tests/cli.ts';
import { harm } from '../../tests/damage.ts';
import { buildRun } from '../../tests/run-builder.ts';
import { openStoreForNew } from '../stores/stores-away.ts';
import type { DoctorLine } from './checks.ts';

let cli: CliHome;
beforeEach(() => (cli = cliHome()));
afterEach(() => {
  cli.remove();
  delete process.env[floorVariable];
});

async function line(name: string): Promise<DoctorLine> {
  const found = (await cli.petrel('doctor', '--json')).json<DoctorLine[]>().find((one) => one.name === name);
  if (found === undefined) throw new Error(`doctor has no check ${name}`);
  return found;
}

it('finds sound runs in order', async () => {
  await buildRun(await cli.store(), { done: 3, checkpoints: [2] });
  expect(await line('runs')).toEqual({ name: 'runs', status: 'green', detail: 'the log of the only run is intact' });
});

it('says whether untrusted code can be run, and what is missing', async () => {
  await cli.store();
  expect(await line('sandbox')).toMatchObject({ status: expect.stringMatching(/green|yellow/) });
  const path = process.env['PATH'];
  process.env['PATH'] = '/nonexistent';
  try {
    expect(await line('sandbox')).toEqual({
      name: 'sandbox',
      status: 'yellow',
      detail: expect.stringMatching(/^the scorer code and reward\.sandbox cannot be used here: .*bwrap/),
      fix: expect.stringContaining('apt-get install bubblewrap'),
    });
  } finally {
    process.env['PATH'] = path;
  }
});

it('names the runs that failed', async () => {
  const { runId } = await buildRun(await cli.store(), { done: 3, checkpoints: [2] });
  await appendStatus(new RunLog(await cli.store(), runId), { wish: 'run', state: 'failed' }, new Date());
  expect(await line('runs')).toEqual({
    name: 'runs',
    status: 'yellow',
    detail: `the log of the only run is intact; 1 failed: ${runId}`,
    fix: `petrel status ${runId} says why`,
  });
});

it.each(['bit flip', 'truncation', 'loss'] as const)('finds the last batch of a log after a %s', async (how) => {
  const store = await cli.store();
  const { runId } = await buildRun(store, { done: 3, checkpoints: [2] });
  harm(store, keys.batch(runId, 1, 3), how);
  expect(await line('runs')).toMatchObject({
    status: 'red',
    detail: expect.stringContaining(how === 'loss' ? runId : keys.batch(runId, 1, 3)),
    fix: expect.stringContaining('petrel ckpt verify'),
  });
});

it.each(['update', 'term'] as const)('finds a damaged head: the %s record', async (kind) => {
  const store = await cli.store();
  const { runId } = await buildRun(store, { done: 3, checkpoints: [2] });
  const key = kind === 'update' ? keys.update(runId, 1, 3) : keys.term(runId, 1);
  harm(store, key, 'bit flip');
  expect(await line('runs')).toMatchObject({ status: 'red', detail: expect.stringContaining(key) });
  expect((await cli.petrel('doctor')).code).toBe(8);
});

it('says which disk has too little room, and how much is needed', async () => {
  await cli.store();
  expect(await line('room')).toMatchObject({ status: 'green', detail: expect.stringContaining('256') });
  process.env[floorVariable] = String(2 ** 40);
  expect(await line('room')).toMatchObject({
    status: 'red',
    detail: expect.stringMatching(
      /^the store .* is full: \d+ MiB are free, 1099511627776 MiB are needed; petrel's home .* is full: /,
    ),
    fix: expect.stringContaining('free some space there'),
  });
});

it('names the runs whose store is missing or whose disk is not mounted; no store is created again', async () => {
  const store = await cli.store();
  const { runId } = await buildRun(store, { done: 3, checkpoints: [2] });
  await drivenRuns(cli.home).note({ runId, store: store.url, kind: 'rl' });
  const folder = fileURLToPath(store.url);
  renameSync(folder, `${folder}-away`);
  for (const isMountPoint of [false, true]) {
    if (isMountPoint) mkdirSync(folder);
    expect(await line('store')).toMatchObject({
      status: 'red',
      detail: `the store ${store.url} is gone; ${runId} waits until it is back`,
      fix: expect.stringContaining('mount its disk'),
    });
    expect((await cli.petrel('status')).err).toContain(`${runId} waits until it is back`);
    await expect(cli.petrel('logs', runId)).rejects.toMatchObject({
      code: 'StoreGone',
      message: expect.stringContaining(store.url),
    });
    for (const where of [null, folder, `${store.url}/`])
      await expect(openStoreForNew(where, cli.home)).rejects.toMatchObject({ code: 'StoreGone' });
    expect(existsSync(folder) && readdirSync(folder).length > 0).toBe(false);
  }
  rmdirSync(folder);
  renameSync(`${folder}-away`, folder);
  expect(await line('store')).toMatchObject({ status: 'green' });
});

it('names a run that is not in its store, which is there, and looks at the others', async () => {
  const store = await cli.store();
  const kept = await buildRun(store, { done: 1 });
  await drivenRuns(cli.home).note({ runId: kept.runId, store: store.url, kind: 'rl' });
  await drivenRuns(cli.home).note({ runId: 'lost', store: store.url, kind: 'rl' });
  expect(await line('store')).toMatchObject({
    status: 'red',
    detail: `lost is not in the store ${store.url}, and waits until it is back; ${store.url}: atomic create works`,
  });
  await expect(cli.petrel('logs', 'lost')).rejects.toMatchObject({
    message: `lost waits: it is not in the store ${store.url}`,
  });
  expect((await openStoreForNew(null, cli.home)).url).toBe(store.url);
});

it('writes nothing into a remembered store that holds nothing', async () => {
  const folder = join(cli.home, 'elsewhere');
  mkdirSync(folder);
  rememberStore(cli.home, pathToFileURL(folder).href);
  expect(await line('store')).toMatchObject({ status: 'yellow', detail: `gone: ${pathToFileURL(folder).href}` });
  expect(readdirSync(folder)).toEqual([]);
});
