import { execFileSync } from 'node:child_process';
import { appendFile, cp, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSafetensors } from './safetensors.ts';
import { openTokenizer } from './tokenizer.ts';
import { readConfigJson } from './folder.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petrel-foreign-'));
  await cp(join(import.meta.dirname, '../examples/01-arithmetic-grpo/base'), folder, { recursive: true });
});
afterEach(async () => rm(folder, { recursive: true }));

const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 538090408\n`;
const page = '<!DOCTYPE html><html><title>Log in</title></html>';

const readers: Readonly<Record<string, () => Promise<unknown>>> = {
  'model.safetensors': () => openSafetensors(folder),
  'config.json': () => readConfigJson(folder),
  'tokenizer.json': () => openTokenizer(folder),
  'tokenizer_config.json': () => openTokenizer(folder),
};

describe('a file of a model that is something else', () => {
  it.each(
    Object.keys(readers).flatMap(
      (file) =>
        [
          [file, 'a pointer of Git LFS', pointer, /^git -C \S+ lfs pull$/],
          [file, 'a page of HTML', page, /get the file again/],
          [file, 'the file is empty', '', /get the file again/],
          [file, 'compressed by zstd', Buffer.from('\x28\xb5\x2f\xfd\0\0\0\0\0\0\0\0', 'latin1'), /^zstd -dc < /],
        ] as const,
    ),
  )('is named, with what to type: %s, %s', async (file, found, content, hint) => {
    await writeFile(join(folder, file), content);
    await expect(readers[file]?.()).rejects.toMatchObject({
      message: expect.stringMatching(new RegExp(`${file}: expected .*; (this is )?${found}`)),
      hint: expect.stringMatching(hint),
    });
  });

  it("is named when it is PyTorch's own, with the command that writes safetensors", async () => {
    const hint = expect.stringMatching(/^python3 -c .*save_pretrained.* \//);
    await writeFile(join(folder, 'model.safetensors'), 'PK\x03\x04archive/data.pkl');
    await expect(openSafetensors(folder)).rejects.toMatchObject({ message: expect.stringMatching(/PyTorch/), hint });
    await rename(join(folder, 'model.safetensors'), join(folder, 'pytorch_model.bin'));
    await expect(openSafetensors(folder)).rejects.toMatchObject({
      message: expect.stringMatching(/found pytorch_model.bin/),
      hint,
    });
  });

  it('is named when it is no file: a link to nothing, a folder', async () => {
    const path = join(folder, 'model.safetensors');
    await rm(path);
    await symlink('../blobs/gone', path);
    await expect(readConfigJson(folder)).rejects.toThrow(`${path}: a link to ../blobs/gone, which cannot be read`);
    await rm(path);
    await mkdir(path);
    await expect(readConfigJson(folder)).rejects.toThrow(`${path}: expected a file, found a folder`);
  });

  it.each(['model.safetensors', 'tokenizer.json', 'config.json'])('is named when it is a pipe: %s', async (name) => {
    await rm(join(folder, name));
    execFileSync('mkfifo', [join(folder, name)]);
    for (const read of [readConfigJson, openTokenizer])
      await expect(read(folder)).rejects.toThrow(`${name}: expected a file, found a named pipe`);
  });

  it('keeps its own error when it is safetensors with bytes too many', async () => {
    await appendFile(join(folder, 'model.safetensors'), Buffer.alloc(64));
    await expect(openSafetensors(folder)).rejects.toThrow(/not a valid safetensors file/);
  });

  it('keeps its own error when it is damaged, not foreign', async () => {
    await writeFile(join(folder, 'config.json'), '{"a": ');
    await expect(readConfigJson(folder)).rejects.toThrow(/not valid JSON/);
    await writeFile(join(folder, 'model.safetensors'), gzipSync('x'));
    await expect(openSafetensors(folder)).rejects.toThrow(/model.safetensors/);
  });
});
