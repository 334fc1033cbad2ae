/** A folder store whose root disappears while it is open. */
import { cp, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { openFolderStore } from './folder.ts';
import { markerName } from './store-folder.ts';
import { temporaryFolders } from '../../tests/temporary-folders.ts';

const fresh = temporaryFolders('petrel-store-');

const bytes = new Uint8Array([1, 2, 3]);
const gone = {
  kind: 'retryable',
  code: 'StoreGone',
  message: expect.stringContaining('is gone'),
  hint: expect.stringContaining('mount its disk'),
};

async function usedStore(): Promise<{ readonly folder: string; readonly store: Store }> {
  const folder = join(await fresh(), 'store');
  const store = await openFolderStore(folder);
  await store.create('runs/a/run.json', bytes);
  return { folder, store };
}

/** Every operation of a store. */
const asks: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  get: (store) => store.get('runs/a/run.json'),
  'get of a range': (store) => store.get('runs/a/run.json', [0, 1]),
  head: (store) => store.head('runs/a/run.json'),
  stream: (store) => store.stream('runs/a/run.json'),
  list: (store) => store.list('runs/'),
  children: (store) => store.children('runs'),
  create: (store) => store.create('runs/a/status/1.json', bytes),
  put: (store) => store.put('runs/a/logs/1.jsonl', bytes),
  'create at the root': (store) => store.create('k', bytes),
};

describe('a folder store that disappears while it is open', () => {
  it.each(Object.entries(asks))('throws StoreGone: %s', async (_, ask) => {
    const { folder, store } = await usedStore();
    await rename(folder, `${folder}-away`);
    await expect(ask(store)).rejects.toMatchObject(gone);
    expect(existsSync(folder)).toBe(false);
    // The empty mount point of a disk.
    await mkdir(folder);
    await expect(ask(store)).rejects.toMatchObject(gone);
    expect(await readdir(folder)).toEqual([]);
  });

  it('works again when the folder or a copy of it is back', async () => {
    const { folder, store } = await usedStore();
    await rename(folder, `${folder}-away`);
    await expect(store.head('runs/b')).rejects.toMatchObject(gone);
    await cp(`${folder}-away`, folder, { recursive: true });
    expect(await store.head('runs/b')).toBeUndefined();
    expect(await store.create('runs/b', bytes)).toBe('created');
    await rm(folder, { recursive: true });
    await expect(store.get('runs/b')).rejects.toMatchObject(gone);
    await rename(`${folder}-away`, folder);
    expect(await store.get('runs/b')).toBeUndefined();
    expect(await store.get('runs/a/run.json')).toEqual(Buffer.from(bytes));
  });
});

it('a folder store that was emptied while open counts as gone, although the folder is the same', async () => {
  const { folder, store } = await usedStore();
  await rm(join(folder, 'runs'), { recursive: true }); // a new folder in its place may have the same inode number
  await expect(store.head('runs/a/run.json')).rejects.toMatchObject(gone);
  await expect(store.create('runs/b/run.json', bytes)).rejects.toMatchObject(gone);
  expect(await readdir(folder)).toEqual([markerName]);
});

it('a folder store is the same with and without a slash at the end of its path', async () => {
  const { folder, store } = await usedStore();
  const same = await openFolderStore(`${folder}/`);
  expect(same.url).toBe(store.url);
  await rename(folder, `${folder}-away`);
  await expect(same.create('k', bytes)).rejects.toMatchObject(gone);
  await expect(openFolderStore(folder, 'refuse')).rejects.toMatchObject(gone);
  expect(existsSync(folder)).toBe(false);
});

describe('a folder that cannot be a store', () => {
  it.each(['/proc/nope', '/proc/nope/deeper', '/dev/null/store'])('is refused at once: %s', async (folder) => {
    await expect(openFolderStore(folder)).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringContaining(`cannot create ${folder}`),
      hint: expect.stringContaining('store: a folder that you may write to'),
    });
  });

  it('is refused at once when it holds other files', async () => {
    await expect(openFolderStore('/proc')).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringContaining('found that /proc is neither: it holds other files'),
      hint: 'store: /proc/petrel-store',
    });
  });
});
