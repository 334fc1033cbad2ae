import { mkdtemp, readdir, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports.ts';
import { storeContract } from '../../tests/contracts/store.ts';
import { openFolderStore } from './folder.ts';
import { probeStore } from './probe.ts';

const fresh = () => mkdtemp(join(tmpdir(), 'petrel-store-'));

storeContract('a folder', async () => {
  const folder = await fresh();
  return { store: await openFolderStore(folder), again: () => openFolderStore(folder) };
});

describe('a folder store', () => {
  it('refuses keys that climb out of it', async () => {
    const store = await openFolderStore(await fresh());
    await expect(store.get('../secret')).rejects.toThrow(InvalidInputError);
    await expect(store.create('/etc/x', new Uint8Array())).rejects.toThrow(InvalidInputError);
  });

  it('leaves no temporary file behind, whoever won', async () => {
    const folder = await fresh();
    const store = await openFolderStore(folder);
    await Promise.all(Array.from({ length: 8 }, () => store.create('k', new Uint8Array(10))));
    expect(await readdir(folder)).toEqual(['k']);
  });
});

describe('what writers that died left in a folder', () => {
  it('is removed when it is old, and nothing else is', async () => {
    const folder = await fresh();
    const store = await openFolderStore(folder);
    await store.put('a/b', new Uint8Array(1));
    for (const [name, at] of [
      ['.tmp-old', '2026-01-01'],
      ['.tmp-new', '2026-01-03'],
      ['old', '2026-01-01'],
    ] as const) {
      await writeFile(join(folder, 'a', name), '');
      await utimes(join(folder, 'a', name), new Date(at), new Date(at));
    }
    expect(await store.removeLeftovers?.(new Date('2026-01-02'))).toBe(1);
    expect((await readdir(join(folder, 'a'))).sort()).toEqual(['.tmp-new', 'b', 'old']);
  });
});

describe('the probe', () => {
  it('refuses a store that lets every writer win', async () => {
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
