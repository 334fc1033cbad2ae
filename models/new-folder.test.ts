import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeNewFolder } from './new-folder.ts';

let around: string;
beforeEach(async () => {
  around = await mkdtemp(join(tmpdir(), 'new-folder-'));
});
afterEach(() => rm(around, { recursive: true, force: true }));

const fill = (partial: string) => writeFile(join(partial, 'ours'), 'ours');

describe('a new folder', () => {
  it('appears with its files, also below missing folders', async () => {
    await writeNewFolder(join(around, 'a/b/c'), fill);
    expect(await readdir(join(around, 'a/b'))).toEqual(['c']);
    expect(await readFile(join(around, 'a/b/c/ours'), 'utf8')).toBe('ours');
  });

  it('may replace an empty folder, also through a symbolic link', async () => {
    await mkdir(join(around, 'empty'));
    await symlink('empty', join(around, 'link'));
    await writeNewFolder(join(around, 'link'), fill);
    expect(await readdir(around)).toEqual(['empty', 'link']);
    expect(await readdir(join(around, 'empty'))).toEqual(['ours']);
  });

  it.each([
    ['a file', () => writeFile(join(around, 'out'), 'mine')],
    [
      'a link to a file',
      async () => {
        await writeFile(join(around, 'target'), 'mine');
        await symlink('target', join(around, 'out'));
      },
    ],
    ['a link to nothing', () => symlink('nowhere', join(around, 'out'))],
    ['a folder that is not empty', () => mkdir(join(around, 'out/mine'), { recursive: true })],
  ])('does not replace %s', async (_, make) => {
    await make();
    const before = await readdir(around, { recursive: true });
    await expect(writeNewFolder(join(around, 'out'), fill)).rejects.toMatchObject({ code: 'InvalidInput' });
    expect(await readdir(around, { recursive: true })).toEqual(before);
  });

  it.each([
    ['a file', () => writeFile(join(around, 'out'), 'mine')],
    ['a folder that is not empty', () => mkdir(join(around, 'out/mine'), { recursive: true })],
  ])('does not replace %s that appeared during the writing', async (_, make) => {
    const writing = writeNewFolder(join(around, 'out'), async (partial) => {
      await fill(partial);
      await make();
    });
    await expect(writing).rejects.toThrow('something was created there while the files were written');
    expect((await readdir(around, { recursive: true }))[0]).toBe('out');
    expect((await readdir(around)).length).toBe(1);
  });

  it('leaves nothing behind when the writing fails', async () => {
    await expect(writeNewFolder(join(around, 'out'), () => Promise.reject(new Error('full')))).rejects.toThrow('full');
    expect(await readdir(around)).toEqual([]);
  });
});
