/** Asks a small HTTP server in this process, which answers as ModelScope's library expects; not ModelScope itself. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvalidInputError, RetryableError } from '../../core/errors.ts';
import { hubSettings, localModel, type ModelOptions, modelScopeSettings } from '../hub.ts';
import { FakeModelScope } from './fake-modelscope.test-support.ts';

const weights = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 31) % 251);
const commit = 'decaf'.padEnd(40, '0');

let hub: FakeModelScope;
let folder: string;
let cache: string;
let shared: string;

beforeEach(async () => {
  hub = new FakeModelScope();
  await hub.start();
  for (const [name, text] of [
    ['config.json', '{"a":1}'],
    ['tokenizer.json', '{}'],
    ['README.md', 'x'],
    ['pytorch_model.bin', 'x'],
  ] as const)
    hub.files.set(name, { bytes: Buffer.from(text) });
  hub.files.set('model.safetensors', { bytes: weights, lfs: true });
  folder = await mkdtemp(join(tmpdir(), 'petrel-modelscope-'));
  cache = join(folder, 'own');
  shared = join(folder, 'shared');
});
afterEach(async () => {
  await hub.stop();
  await rm(folder, { recursive: true });
});

const options = (env: Readonly<Record<string, string>> = {}): ModelOptions => ({
  ...hubSettings({ HOME: folder, ...env }),
  modelScope: modelScopeSettings({ HOME: folder, MODELSCOPE_ENDPOINT: hub.url, MODELSCOPE_CACHE: shared, ...env }),
  cache,
  download: { attempts: 3, retryMs: 1 },
});
const find = (name: string, env?: Readonly<Record<string, string>>) => localModel(`modelscope:${name}`, options(env));
const weightsIn = (at: string) => readFile(join(at, 'model.safetensors'));

describe('a model of ModelScope', () => {
  it('is fetched with the files that it needs, and then found without ModelScope', async () => {
    const model = await find('org/tiny');
    expect(model).toEqual({
      folder: join(cache, 'modelscope/org--tiny', model.hub?.commit ?? ''),
      hub: { name: 'modelscope:org/tiny', revision: 'master', commit: expect.stringMatching(/^[\da-f]{64}$/) },
    });
    expect((await readdir(model.folder)).sort()).toEqual([
      'complete.json',
      'config.json',
      'model.safetensors',
      'tokenizer.json',
    ]);
    expect((await weightsIn(model.folder)).equals(weights)).toBe(true);
    hub.status = 503;
    expect((await find('org/tiny')).folder).toBe(model.folder);
  });

  it('is fetched again when a file that it needs has changed, and not for another', async () => {
    const before = await find('org/tiny');
    hub.files.set('README.md', { bytes: Buffer.from('other') });
    expect((await find('org/tiny')).folder).toBe(before.folder);
    hub.files.set('config.json', { bytes: Buffer.from('{"a":2}') });
    const after = await find('org/tiny');
    expect(after.folder).not.toBe(before.folder);
    expect(await readFile(join(after.folder, 'config.json'), 'utf8')).toBe('{"a":2}');
  });

  it('is asked for at a revision, and a commit that is there needs no ModelScope', async () => {
    hub.revisions = ['main', 'v2', commit];
    await localModel('modelscope:org/tiny', { ...options(), revision: 'v2' });
    await find('org/tiny@main');
    expect(hub.log.filter((line) => line.includes('/repo/files'))).toEqual([
      '/api/v1/models/org/tiny/repo/files v2',
      '/api/v1/models/org/tiny/repo/files main',
    ]);
    const { hub: origin } = await find(`org/tiny@${commit}`);
    expect(origin?.commit).toBe(commit);
    hub.log.length = 0;
    await find(`org/tiny@${commit}`);
    expect(hub.log).toEqual([]);
    await expect(find('org/tiny')).rejects.toThrow(/has no model org\/tiny at master/);
  });

  it('goes on after a broken transfer, also where the server knows no ranges', async () => {
    for (const knowsRanges of [true, false]) {
      hub.knowsRanges = knowsRanges;
      hub.files.set('model.safetensors', { bytes: weights });
      hub.breakAfter = { bytes: 200_000, times: 1 };
      const model = await find('org/tiny');
      expect(hub.breakAfter.times).toBe(0);
      expect((await weightsIn(model.folder)).equals(weights)).toBe(true);
      await rm(cache, { recursive: true });
    }
  });

  it('is refused when a file arrives damaged twice', async () => {
    hub.corrupt = 1;
    const model = await find('org/tiny');
    expect(await readFile(join(model.folder, 'config.json'), 'utf8')).toBe('{"a":1}');
    await rm(model.folder, { recursive: true });
    hub.corrupt = 99;
    await expect(find('org/tiny')).rejects.toThrow(/^modelscope:org\/tiny: config.json arrived with another checksum/);
    expect(await readdir(model.folder)).not.toContain('complete.json');
  });

  it('is asked for with the token, which goes to no other host and not to Hugging Face', async () => {
    hub.token = 'ms-secret';
    await find('org/tiny', { MODELSCOPE_API_TOKEN: 'ms-secret' });
    expect(hub.leaked).toEqual([]);
    await expect(find('org/other', { HF_TOKEN: 'ms-secret' })).rejects.toThrow(/gives no access to org\/other \(403\)/);
  });

  it('leaves its weights for later when only its description is asked for', async () => {
    const model = await localModel('modelscope:org/tiny', { ...options(), withoutWeights: true });
    expect(model.missingBytes).toBe(weights.length);
    expect(hub.log.some((line) => line.endsWith('model.safetensors'))).toBe(false);
  });
});

describe('ModelScope gives clear errors', () => {
  it('for a model that is not there, or not to be had', async () => {
    await expect(find('org/none')).rejects.toMatchObject({
      message: `${hub.url} has no model org/none at master`,
      hint: expect.stringContaining('MODELSCOPE_API_TOKEN'),
    });
    hub.token = 'ms-secret';
    await expect(find('org/tiny')).rejects.toMatchObject({
      message: expect.stringContaining('gives no access to org/tiny (403)'),
      hint: `export MODELSCOPE_API_TOKEN=TOKEN, with a token of ${hub.url}/my/myaccesstoken`,
    });
    await expect(find('org/tiny', { MODELSCOPE_API_TOKEN: 'other' })).rejects.toMatchObject({
      hint: expect.stringContaining(`accept the terms on ${hub.url}/models/org/tiny`),
    });
  });

  it('when it gives no answer, or another than a list of files', async () => {
    await expect(find('org/tiny', { MODELSCOPE_ENDPOINT: 'http://127.0.0.1:9' })).rejects.toThrow(RetryableError);
    hub.status = 500;
    await expect(find('org/tiny')).rejects.toThrow(`${hub.url} cannot be read: it answered 500`);
    hub.status = undefined;
    hub.listing = { Code: 500, Message: 'try later' };
    await expect(find('org/tiny')).rejects.toThrow('cannot be read: it answered 500: try later');
    for (const listing of [
      '<html>',
      { Code: 200, Data: { Files: [{ Path: 'config.json', Type: 'blob', Size: '7' }] } },
    ]) {
      hub.listing = listing;
      await expect(find('org/tiny')).rejects.toThrow(/it answered .*, expected a list of files as JSON/);
    }
    hub.listing = {
      Code: 200,
      Data: {
        Files: ['config.json', 'model.safetensors', 'merges.txt'].map((Path) => ({ Path, Type: 'blob', Size: 7 })),
      },
    };
    await expect(find('org/tiny')).rejects.toThrow('modelscope:org/tiny: merges.txt is listed at master, but missing');
    hub.listing = { Code: 200, Data: { Files: null } };
    await expect(find('org/tiny')).rejects.toThrow('modelscope:org/tiny: the repository has no config.json');
  });

  it.each(['tiny', 'org/tiny/x', 'org/../x', '', './tiny'])('for a name that is none: %j', async (name) => {
    await expect(find(name)).rejects.toThrow(InvalidInputError);
    await expect(find(name)).rejects.toThrow(/expected modelscope:org\/name or modelscope:org\/name@revision$/);
    expect(hub.log).toEqual([]);
  });
});

describe('a model in the cache of ModelScope’s library', () => {
  const layOut = async (at: string, leftOut = '', version?: string): Promise<string> => {
    const place = join(shared, at);
    await mkdir(place, { recursive: true });
    for (const name of ['config.json', 'tokenizer.json', 'model.safetensors'])
      if (name !== leftOut) await writeFile(join(place, name), '{}');
    if (version !== undefined) await writeFile(join(place, '.mv'), `Revision:${version},CreatedAt:1754000000`);
    return place;
  };
  const offline = { HF_HUB_OFFLINE: '1' };

  it.each(['models/org--tiny/snapshots/master', 'models/org/tiny', 'hub/models/org/tiny'])(
    'is used where it lies without a network: %s',
    async (at) => {
      const place = await layOut(at);
      const before = await readdir(place);
      expect((await find('org/tiny', offline)).folder).toBe(place);
      expect(await readdir(place)).toEqual(before);
      expect(hub.log).toEqual([]);
      hub.status = 503;
      expect((await find('org/tiny')).folder).toBe(place);
    },
  );

  it('is found by the name that the library gives a dot, and by the revision that it notes', async () => {
    const place = await layOut('models/org/Tiny2___5-1B', '', 'v2');
    expect((await find('org/Tiny2.5-1B@v2', offline)).folder).toBe(place);
    await expect(find('org/Tiny2.5-1B', offline)).rejects.toThrow(/no cache of this machine has it/);
  });

  it('is refused when it is not whole, with what to type', async () => {
    await expect(find('org/tiny@v2', offline)).rejects.toMatchObject({
      message: expect.stringMatching(
        /^modelscope:org\/tiny at v2 cannot be fetched, .*: no cache of this machine has it$/,
      ),
      hint: 'where there is a network: modelscope download org/tiny --revision v2',
    });
    const place = await layOut('hub/models/org/tiny', 'model.safetensors');
    await expect(find('org/tiny', offline)).rejects.toMatchObject({
      message: expect.stringContaining(`${place} lacks model.safetensors`),
      hint: 'where there is a network: modelscope download org/tiny',
    });
    const whole = await layOut('models/org/tiny');
    expect((await find('org/tiny', offline)).folder).toBe(whole);
  });

  it('is not taken for the newest while ModelScope answers', async () => {
    await layOut('models/org--tiny/snapshots/master');
    expect((await find('org/tiny')).folder).toMatch(/own\/modelscope/);
    hub.log.length = 0;
    expect((await find('org/tiny', offline)).folder).toMatch(/own\/modelscope/);
    expect(hub.log).toEqual([]);
  });
});

it.each<[Record<string, string>, object]>([
  [{}, { hubUrl: 'https://modelscope.cn', sharedCache: '/home/u/.cache/modelscope' }],
  [{ MODELSCOPE_DOMAIN: 'www.modelscope.ai' }, { hubUrl: 'https://www.modelscope.ai' }],
  [{ MODELSCOPE_DOMAIN: 'a.example', MODELSCOPE_ENDPOINT: 'http://b.example/' }, { hubUrl: 'http://b.example' }],
  [{ MODELSCOPE_API_TOKEN: ' t\n' }, { token: 't' }],
  [{ MODELSCOPE_API_TOKEN: '', HF_TOKEN: 'hf_a' }, { token: undefined }],
  [{ MODELSCOPE_CACHE: '~/ms' }, { sharedCache: '/home/u/ms' }],
])('settings are those of ModelScope’s library: %j', (env, settings) => {
  expect(modelScopeSettings({ HOME: '/home/u', ...env })).toMatchObject(settings);
});
