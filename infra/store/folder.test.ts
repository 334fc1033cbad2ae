import { existsSync } from 'node:fs';
import { mkdir, readdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { storeContract } from '../../tests/contracts/store.ts';
import { openFolderStore } from './folder.ts';
import { probeStore } from './probe.ts';
import { markerName } from './store-folder.ts';
import { temporaryFolders } from '../../tests/temporary-folders.ts';

const fresh = temporaryFolders('petrel-store-');

storeContract('a folder', async () => {
  const folder = await fresh();
  return { store: await openFolderStore(folder), again: () => openFolderStore(folder) };
});

describe('a folder store', () => {
  it('refuses keys that lead out of it', async () => {
    const store = await openFolderStore(await fresh());
    await expect(store.get('../secret')).rejects.toThrow(InvalidInputError);
    await expect(store.create('/etc/x', new Uint8Array())).rejects.toThrow(InvalidInputError);
  });

  it('leaves no temporary file behind, whether the create succeeds or not', async () => {
    const folder = await fresh();
    const store = await openFolderStore(folder);
    await Promise.all(Array.from({ length: 8 }, () => store.create('k', new Uint8Array(10))));
    expect(await readdir(folder)).toEqual([markerName, 'k']);
  });
});

describe('the temporary files of dead writers', () => {
  const own = '.tmp-0123456789abcdef';
  const [old, young] = [new Date('2026-01-01'), new Date('2026-01-03')];

  async function write(path: string, at: Date): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '');
    await utimes(path, at, at);
  }

  it('are removed when they are old, and no other file is', async () => {
    const folder = await fresh();
    const store = await openFolderStore(folder);
    const gone = [`models/${'a'.repeat(64)}/${own}`, `runs/learn/blobs/${own}`, `runs/learn/terms/1/2/${own}`];
    const kept = [own, `src/${own}`, `models/llama/${own}`, `runs/learn/plots/${own}`, 'runs/learn/blobs/.tmp-notes'];
    for (const path of [...gone, ...kept]) await write(join(folder, path), old);
    await write(join(folder, 'runs/learn/status', own), young);
    expect(await store.removeLeftovers?.(new Date('2026-01-02'))).toBe(gone.length);
    for (const path of gone) expect(existsSync(join(folder, path)), path).toBe(false);
    for (const path of [...kept, `runs/learn/status/${own}`]) expect(existsSync(join(folder, path)), path).toBe(true);
  });

  it('stay behind a symbolic link', async () => {
    const [folder, elsewhere] = [await fresh(), await fresh()];
    const store = await openFolderStore(folder);
    await write(join(elsewhere, 'learn/blobs', own), old);
    await symlink(elsewhere, join(folder, 'runs'));
    await mkdir(join(folder, 'schedules/nightly'), { recursive: true });
    await symlink(join(elsewhere, 'learn/blobs'), join(folder, 'schedules/nightly/blobs'));
    expect(await store.removeLeftovers?.(new Date('2026-01-02'))).toBe(0);
    expect(existsSync(join(elsewhere, 'learn/blobs', own))).toBe(true);
  });
});

describe('removing from a folder', () => {
  it('removes nothing behind a symbolic link, and not the link itself', async () => {
    const [folder, elsewhere] = [await fresh(), await fresh()];
    const store = await openFolderStore(folder);
    await writeFile(join(elsewhere, 'id_rsa'), 'mine');
    await symlink(elsewhere, join(folder, 'link'));
    await mkdir(join(folder, 'in'));
    await symlink(join(elsewhere, 'id_rsa'), join(folder, 'in/file'));
    await symlink(elsewhere, join(folder, 'in/folder'));
    for (const key of ['link/id_rsa', 'link/', 'in/folder/'])
      await expect(store.remove(key)).rejects.toMatchObject({ code: 'OutsideStore' });
    for (const key of ['link', 'in/file', 'in/']) await store.remove(key);
    expect(await readdir(elsewhere)).toEqual(['id_rsa']);
    expect((await readdir(join(folder, 'in'))).sort()).toEqual(['file', 'folder']);
  });

  it('works in a store whose path is a symbolic link', async () => {
    const folder = await fresh();
    const link = join(await fresh(), 'link');
    await symlink(folder, link);
    const store = await openFolderStore(link);
    await store.put('a/b', new Uint8Array(1));
    await store.remove('a/b');
    expect(await store.list('a/')).toEqual([]);
  });

  it('keeps the keys that were not selected, and leaves no empty folder', async () => {
    const folder = await fresh();
    const store = await openFolderStore(folder);
    for (const key of ['a/b/1', 'a/b/2', 'a/c/1']) await store.put(key, new Uint8Array(1));
    await store.remove('a/', (key) => key.endsWith('1'));
    expect((await readdir(folder, { recursive: true })).sort()).toEqual([markerName, 'a', 'a/b', 'a/b/2']);
  });
});

describe('the probe', () => {
  it('refuses a store in which every writer succeeds', async () => {
    const honest = await openFolderStore(await fresh());
    const careless: Store = new Proxy(honest, {
      get: (target, name) => {
        if (name === 'create') {
          return async (key: string, data: Uint8Array) => {
            await target.put(key, data);
            return 'created';
          };
        }
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    await expect(probeStore(careless)).rejects.toThrow(TerminalError);
    await expect(probeStore(careless)).rejects.toMatchObject({ code: 'StoreDoesNotFence' });
  });
});
