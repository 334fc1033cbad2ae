import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvalidInputError, RetryableError } from '../../core/errors.ts';
import { type ModelOptions, localModel, modelScopeSettings } from '../hub.ts';
import { FakeHub, fakeCommit } from './fake-hub.test-support.ts';

const weights = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 31) % 251);

let hub: FakeHub;
let cache: string;
let options: ModelOptions;

beforeEach(async () => {
  hub = new FakeHub();
  await hub.start();
  for (const [name, text] of [
    ['config.json', '{"a":1}'],
    ['tokenizer.json', '{}'],
    ['README.md', 'x'],
    ['pytorch_model.bin', 'x'],
  ] as const) {
    hub.files.set(name, { bytes: new TextEncoder().encode(text) });
  }
  hub.files.set('model.safetensors', { bytes: weights, lfs: true });
  cache = await mkdtemp(join(tmpdir(), 'hub-'));
  options = {
    hubUrl: hub.url,
    token: undefined,
    modelScope: modelScopeSettings({}),
    cache,
    download: { attempts: 3, retryMs: 1 },
  };
});

afterEach(async () => {
  await hub.stop();
  await rm(cache, { recursive: true, force: true });
});

describe('localModel', () => {
  it('downloads a model’s files by commit, and then works without the hub', async () => {
    const totals: number[] = [];
    const model = await localModel('org/tiny', {
      ...options,
      onProgress: ({ bytes, totalBytes }) => totals.push(bytes / totalBytes),
    });
    expect(model).toEqual({
      folder: join(cache, 'org--tiny', fakeCommit),
      hub: { name: 'org/tiny', revision: 'main', commit: fakeCommit },
    });
    expect((await readdir(model.folder)).sort()).toEqual([
      'complete.json',
      'config.json',
      'model.safetensors',
      'tokenizer.json',
    ]);
    expect((await readFile(join(model.folder, 'model.safetensors'))).equals(weights)).toBe(true);
    expect(totals.at(-1)).toBe(1);

    const before = hub.log.length;
    await localModel(`org/tiny@${fakeCommit}`, options);
    expect(hub.log.length).toBe(before);
    hub.status = 503;
    expect((await localModel('org/tiny', options)).folder).toBe(model.folder);
  });

  it('continues a broken transfer', async () => {
    hub.breakAfter = { bytes: 100_000, times: 2 };
    const { folder } = await localModel('org/tiny', options);
    expect(hub.breakAfter.times).toBe(0);
    expect((await readFile(join(folder, 'model.safetensors'))).equals(weights)).toBe(true);
  });

  it('keeps a partial download after a failure, and downloads only the rest the next time', async () => {
    hub.breakAfter = { bytes: 0, times: 99 };
    await expect(localModel('org/tiny', options)).rejects.toThrow(RetryableError);
    hub.breakAfter = undefined;
    const folder = join(cache, 'org--tiny', fakeCommit);
    await writeFile(join(folder, 'model.safetensors.partial'), weights.subarray(0, 299_000));
    let fetched = 0;
    await localModel('org/tiny', {
      ...options,
      onProgress: ({ file, bytes }) => void (file === 'model.safetensors' && (fetched = bytes)),
    });
    expect(fetched).toBeLessThan(2000);
    expect((await readFile(join(folder, 'model.safetensors'))).equals(weights)).toBe(true);
  });

  it('downloads a damaged file again, and refuses it when it is damaged twice', async () => {
    hub.corrupt = 1;
    const { folder } = await localModel('org/tiny', options);
    expect(await readFile(join(folder, 'config.json'), 'utf8')).toBe('{"a":1}');
    await rm(folder, { recursive: true });
    hub.corrupt = 99;
    await expect(localModel('org/tiny', options)).rejects.toThrow(/arrived with another checksum/);
    expect(await readdir(folder)).not.toContain('complete.json');
  });

  it('does not trust a partial file of other content', async () => {
    const folder = join(cache, 'org--tiny', fakeCommit);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'model.safetensors.partial'), new Uint8Array(1000).fill(7));
    await localModel('org/tiny', options);
    expect((await readFile(join(folder, 'model.safetensors'))).equals(weights)).toBe(true);
  });

  it('sends the token to the hub, and never to another host after a redirect', async () => {
    hub.token = 'hf_secret';
    await localModel('org/tiny', { ...options, token: 'hf_secret' });
    expect(hub.leaked).toEqual([]);
  });

  it('downloads once for two simultaneous calls', async () => {
    const folders = await Promise.all([localModel('org/tiny', options), localModel('org/tiny', options)]);
    expect(folders[0]?.folder).toBe(folders[1]?.folder);
    expect(hub.log.filter((path) => path.includes('/tree/'))).toHaveLength(1);
  });

  it('gives clear errors', async () => {
    await expect(localModel('org/none', options)).rejects.toThrow(/has no model org\/none at main/);
    hub.token = 'hf_secret';
    await expect(localModel('org/tiny', options)).rejects.toMatchObject({
      message: expect.stringMatching(/gives no access to org\/tiny \(401\)/),
      hint: expect.stringMatching(/Set HF_TOKEN/),
    });
    await expect(localModel('org/tiny', { ...options, token: 'hf_other' })).rejects.toMatchObject({
      hint: expect.stringMatching(/does not give access/),
    });
    await expect(localModel('org/tiny', { ...options, token: 'nonsense' })).rejects.toThrow(
      /does not look like an access token/,
    );
    hub.token = undefined;
    hub.status = 500;
    await expect(localModel('org/tiny', options)).rejects.toThrow(/cannot be read: it answered 500/);
    await expect(localModel('org/tiny', { ...options, hubUrl: 'http://127.0.0.1:9' })).rejects.toThrow(RetryableError);
    hub.status = undefined;
    hub.files.delete('model.safetensors');
    await expect(localModel('org/tiny', options)).rejects.toThrow(
      /expected model.safetensors.*found pytorch_model.bin/,
    );
    hub.files.delete('config.json');
    await expect(localModel('org/tiny', options)).rejects.toThrow(/no config.json/);
  });

  it('uses folders directly, and distinguishes them from names', async () => {
    await writeFile(join(cache, 'config.json'), '{}');
    expect(await localModel(cache, options)).toEqual({ folder: cache });
    await expect(localModel(join(cache, 'nowhere'), options)).rejects.toThrow(/there is no config.json/);
    await expect(localModel('not a model', options)).rejects.toThrow(InvalidInputError);
    await expect(localModel('org/../secret', options)).rejects.toThrow(InvalidInputError);
  });
});
