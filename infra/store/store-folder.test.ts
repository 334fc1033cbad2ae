import { existsSync, statSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { openFolderStore } from './folder.ts';
import { markerName } from './store-folder.ts';

let around: string;
beforeEach(async () => {
  around = await mkdtemp(join(tmpdir(), 'petrel-around-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(around, { recursive: true, force: true });
});

const digest = 'a'.repeat(64);
const runId = 'learn-20260102-030405-0a1b';

async function write(key: string): Promise<void> {
  await mkdir(dirname(join(around, key)), { recursive: true });
  await writeFile(join(around, key), '');
}

describe('a new store', () => {
  it('is created at a free path or in an empty folder, and is recognised by its marker', async () => {
    for (const folder of [join(around, 'deep/new'), join(around, 'empty')]) {
      if (folder.endsWith('empty')) await mkdir(folder);
      await openFolderStore(folder);
      expect(await readdir(folder)).toEqual([markerName]);
      await writeFile(join(folder, 'notes.txt'), 'mine');
      await openFolderStore(folder);
    }
  });

  it('is opened by all that create it at the same time', async () => {
    for (let round = 0; round < 20; round++) {
      const folder = join(around, `round-${round}`);
      // Each begins a little later than the one before, so that some look while another one writes the marker.
      await Promise.all(
        Array.from({ length: 12 }, async (_, turns) => {
          for (let turn = 0; turn < turns; turn++) await readdir(around);
          await openFolderStore(folder);
        }),
      );
      expect(await readdir(folder)).toEqual([markerName]);
    }
  });

  it('is created on a freshly formatted disk', async () => {
    await mkdir(join(around, 'lost+found'));
    await openFolderStore(around);
    expect(existsSync(join(around, markerName))).toBe(true);
  });

  it.each(['thesis.txt', 'models/llama-3-8b/config.json', `models/${digest}/config.json`, 'runs/exp1/events.log'])(
    'is refused beside %s',
    async (key) => {
      await write(key);
      await expect(openFolderStore(around)).rejects.toMatchObject({
        code: 'InvalidInput',
        message: expect.stringContaining(`it holds other files (${key.split('/')[0]})`),
        hint: `store: ${join(around, 'petrel-store')}`,
      });
      expect(existsSync(join(around, markerName))).toBe(false);
    },
  );

  it('is refused in the root folder and in a home folder, also through a link', async () => {
    await expect(openFolderStore('/')).rejects.toThrow('it is the root folder');
    await symlink(homedir(), join(around, 'link'));
    await expect(openFolderStore(join(around, 'link'))).rejects.toThrow('it is a home folder');
    await mkdir(join(around, 'home'));
    vi.stubEnv('HOME', join(around, 'home'));
    await expect(openFolderStore(join(around, 'home'))).rejects.toThrow('it is a home folder');
  });
});

it.each([
  keys.run(runId),
  keys.schedule('nightly', 1),
  keys.model(digest, 'manifest.json'),
  keys.dataset(digest, 'tokens.safetensors'),
])('a store without a marker is known by %s, and is left without', async (key) => {
  await write(key);
  await write('thesis.txt');
  await openFolderStore(around);
  expect(existsSync(join(around, markerName))).toBe(false);
});

describe('the permissions of a store', () => {
  const modeOf = (path: string) => statSync(join(around, path)).mode & 0o777;
  async function modes(): Promise<readonly number[]> {
    const store = await openFolderStore(join(around, 'store'));
    await store.put('runs/x/blobs/1', new Uint8Array(1));
    await store.put(
      'runs/x/blobs/2',
      (async function* () {
        yield new Uint8Array(1);
      })(),
    );
    await store.create('runs/x/run.json', new Uint8Array(1));
    return ['runs/x/blobs', 'runs/x/blobs/1', 'runs/x/blobs/2', 'runs/x/run.json'].map((key) => modeOf(`store/${key}`));
  }

  it('are for its owner only in a folder that petrel created', async () => {
    expect(await modes()).toEqual([0o700, 0o600, 0o600, 0o600]);
    expect(modeOf('store')).toBe(0o700);
  });

  it('follow the umask in a folder that was opened to others', async () => {
    await mkdir(join(around, 'store'));
    await chmod(join(around, 'store'), 0o770);
    const before = process.umask(0o007);
    try {
      expect(await modes()).toEqual([0o770, 0o660, 0o660, 0o660]);
    } finally {
      process.umask(before);
    }
  });
});
