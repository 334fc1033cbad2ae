import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { packageRoot } from '../home.ts';
import { openStore } from '../store/open.ts';
import { fetchBuild, publishBuild, readBuild } from './builds.ts';
import type { Build } from './builds.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-builds-'));
let store: Store;
let build: Build;
beforeAll(async () => {
  store = await openStore(join(folder, 'store'));
  build = await readBuild(packageRoot());
  await publishBuild(store, build);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('arrives as it was published, with the rights of its files', async () => {
  const place = await fetchBuild(store, build.digest, join(folder, 'home'));
  expect((await readBuild(place)).digest).toBe(build.digest);
  const reaper = 'build/native/petrel-reaper';
  expect(statSync(join(place, reaper)).mode & 0o111).toBe(statSync(join(packageRoot(), reaper)).mode & 0o111);
  expect(readFileSync(join(place, 'dist/build-id'))).toEqual(readFileSync(join(packageRoot(), 'dist/build-id')));
});

it('has all that its worker loads: started without a stack, it says so', async () => {
  const place = await fetchBuild(store, build.digest, join(folder, 'home'));
  const { stderr } = spawnSync(process.execPath, [join(place, 'dist/programs/worker.js')], {
    env: {},
    encoding: 'utf8',
  });
  expect(stderr).toContain('PETREL_STACK is not set');
});

it('removes what a process has left that was ended while it fetched one, and nothing else', async () => {
  const home = join(folder, 'interrupted');
  const [ended, present] = [2 ** 22 + 1, process.ppid].map((pid) => `${'a'.repeat(64)}.${pid}.tmp`);
  for (const name of [ended, present, 'notes']) mkdirSync(join(home, name ?? ''), { recursive: true });
  await fetchBuild(store, build.digest, home);
  expect(readdirSync(home).sort()).toEqual([present, build.digest, 'notes'].sort());
});

it('is refused when it is missing in the store, or the store has other bytes under its digest', async () => {
  await expect(fetchBuild(store, '0'.repeat(64), join(folder, 'none'))).rejects.toMatchObject({
    code: 'NoBuild',
    message: expect.stringContaining(`builds/${'0'.repeat(64)}.json is missing`),
  });
  const [file] = build.files;
  if (file === undefined) throw new Error('a build has files');
  await store.remove(keys.buildFile(file.digest));
  await store.put(keys.buildFile(file.digest), new TextEncoder().encode('other'));
  await expect(fetchBuild(store, build.digest, join(folder, 'wrong'))).rejects.toMatchObject({
    code: 'WrongBuild',
    message: expect.stringContaining(`expected bytes with the digest ${file.digest}`),
  });
});
