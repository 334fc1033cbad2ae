import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import { openExistingStore, openStore } from './open.ts';
import { temporaryFolders } from '../../tests/temporary-folders.ts';

const fresh = temporaryFolders('petrel-store-');

describe('the location of a store', () => {
  it('is a folder, by its path or as a URL', async () => {
    const folder = await fresh();
    const url = pathToFileURL(folder).href;
    expect([(await openStore(folder)).url, (await openStore(url)).url]).toEqual([url, url]);
  });

  it.each(['gs://bucket/x', 's3:/bucket', 'S3://bucket', 'file:/tmp/x'])(
    'is not %s: no folder of that name is made',
    async (where) => {
      await expect(openStore(where)).rejects.toMatchObject({
        code: 'InvalidInput',
        hint: expect.stringContaining('s3://bucket/prefix') as string,
      });
    },
  );

  it('is not created when a command only reads it', async () => {
    const mistyped = join(await fresh(), 'mistyped');
    await expect(openExistingStore(mistyped)).rejects.toMatchObject({ code: 'NotFound' });
    await expect(openExistingStore(pathToFileURL(mistyped).href)).rejects.toMatchObject({ code: 'NotFound' });
    expect(existsSync(mistyped)).toBe(false);
  });

  it('cannot be below a file', async () => {
    const file = join(await fresh(), 'file');
    await writeFile(file, '');
    await expect(openStore(join(file, 'store'))).rejects.toThrow(InvalidInputError);
    await expect(openStore(file)).rejects.toThrow(/cannot create/);
  });
});
