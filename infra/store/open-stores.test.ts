import { existsSync } from 'node:fs';
import { mkdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { storesByUrl } from './open-stores.ts';
import { temporaryFolders } from '../../tests/temporary-folders.ts';

const fresh = temporaryFolders('petrel-store-');

it('does not create a missing folder, and opens it when it is back', async () => {
  const folder = await fresh();
  await mkdir(join(folder, 'runs'));
  const [url, away] = [pathToFileURL(folder).href, `${folder}-away`];
  await rename(folder, away);
  const open = storesByUrl(() => true);
  await expect(open(url)).rejects.toMatchObject({ kind: 'retryable', code: 'StoreGone' });
  expect(existsSync(folder)).toBe(false);
  // The empty mount point of its disk.
  await mkdir(folder);
  await expect(open(url)).rejects.toMatchObject({ code: 'StoreGone' });
  await rmdir(folder);
  await rename(away, folder);
  expect((await open(url)).url).toBe(url);
  await rm(folder, { recursive: true });
});

it('opens a store only after the stack knows it', async () => {
  const folder = await fresh();
  await mkdir(join(folder, 'runs'));
  const url = pathToFileURL(folder).href;
  const known = new Set<string>();
  const open = storesByUrl((one) => known.has(one));
  await expect(open(url)).rejects.toMatchObject({ kind: 'terminal', code: 'UnknownStore' });
  known.add(url);
  expect((await open(url)).url).toBe(url);
  await rm(folder, { recursive: true });
});
