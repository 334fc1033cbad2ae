import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import { hubSettings, localModel, type ModelOptions, modelScopeSettings } from '../hub.ts';
import { FakeHub, fakeCommit } from './fake-hub.test-support.ts';

const other = 'decaf'.padEnd(40, '0');
const files = { 'config.json': '{}', 'tokenizer.json': '{}', 'model.safetensors': 'weights' };

let hub: FakeHub;
let folder: string;
let shared: string;
let options: ModelOptions;

beforeEach(async () => {
  hub = new FakeHub();
  await hub.start();
  for (const [name, text] of Object.entries(files)) hub.files.set(name, { bytes: Buffer.from(text) });
  folder = await mkdtemp(join(tmpdir(), 'petrel-shared-'));
  shared = join(folder, 'shared');
  options = {
    hubUrl: hub.url,
    token: undefined,
    modelScope: modelScopeSettings({}),
    cache: join(folder, 'own'),
    sharedCache: shared,
    download: { attempts: 1, retryMs: 1 },
  };
});
afterEach(async () => {
  await hub.stop();
  await rm(folder, { recursive: true });
});

/** Lays a model out as huggingface_hub does. Returns its snapshot's folder. */
async function layOut(commit: string, content: Readonly<Record<string, string>>, revision = 'main'): Promise<string> {
  const home = join(shared, 'models--org--tiny');
  const snapshot = join(home, 'snapshots', commit);
  const ref = join(home, 'refs', revision);
  for (const path of [join(home, 'blobs'), snapshot, dirname(ref)]) await mkdir(path, { recursive: true });
  await writeFile(ref, commit);
  for (const [name, text] of Object.entries(content)) {
    const blob = Buffer.from(`${commit}${name}`).toString('hex');
    await writeFile(join(home, 'blobs', blob), text);
    await symlink(join('../../blobs', blob), join(snapshot, name));
  }
  return snapshot;
}

describe('a model in the cache of the Python client', () => {
  it('is used where it lies when it is the commit that the hub names: nothing is fetched or copied', async () => {
    const snapshot = await layOut(fakeCommit, files);
    const model = await localModel('org/tiny', options);
    expect(model).toEqual({ folder: snapshot, hub: { name: 'org/tiny', revision: 'main', commit: fakeCommit } });
    expect(hub.log).toEqual(['/api/models/org/tiny/revision/main']);
    expect(await readdir(join(folder, 'own/org--tiny'))).toEqual(['refs']);
  });

  it('is fetched when the hub names another commit', async () => {
    await layOut(other, files);
    const model = await localModel('org/tiny', options);
    expect(model.folder).toBe(join(folder, 'own/org--tiny', fakeCommit));
    expect(await readFile(join(model.folder, 'model.safetensors'), 'utf8')).toBe('weights');
  });

  it('needs no hub for a full commit', async () => {
    const snapshot = await layOut(other, files);
    expect((await localModel(`org/tiny@${other}`, options)).folder).toBe(snapshot);
    expect(hub.log).toEqual([]);
  });

  it('is used as last fetched when the hub gives no answer, or no access', async () => {
    const snapshot = await layOut(other, files, 'refs/pr/1');
    for (const status of [503, 401]) {
      hub.status = status;
      expect((await localModel('org/tiny@refs/pr/1', options)).folder).toBe(snapshot);
    }
  });

  it('is fetched when the snapshot lacks a file', async () => {
    for (const lacking of Object.keys(files)) {
      await layOut(fakeCommit, Object.fromEntries(Object.entries(files).filter(([name]) => name !== lacking)));
      expect((await localModel('org/tiny', options)).folder).toBe(join(folder, 'own/org--tiny', fakeCommit));
      await rm(shared, { recursive: true });
      await rm(join(folder, 'own'), { recursive: true });
    }
  });
});

describe('HF_HUB_OFFLINE', () => {
  it('takes the model from a cache, without any request', async () => {
    const snapshot = await layOut(other, files);
    expect((await localModel('org/tiny', { ...options, offline: true })).folder).toBe(snapshot);
    expect(hub.log).toEqual([]);
  });

  it('takes what petrel itself has fetched', async () => {
    const { folder: fetched } = await localModel('org/tiny', options);
    hub.log.length = 0;
    expect((await localModel('org/tiny', { ...options, offline: true })).folder).toBe(fetched);
    expect(hub.log).toEqual([]);
  });

  it('takes sharded weights, and names a shard that is not there', async () => {
    const index = JSON.stringify({
      weight_map: { a: 'model-00001-of-00002.safetensors', b: 'model-00002-of-00002.safetensors' },
    });
    const { 'model.safetensors': _, ...rest } = files;
    const sharded = { ...rest, 'model.safetensors.index.json': index, 'model-00001-of-00002.safetensors': 'x' };
    await layOut(other, sharded);
    await expect(localModel('org/tiny', { ...options, offline: true })).rejects.toThrow(
      /lacks model-00002-of-00002.safetensors$/,
    );
    await rm(shared, { recursive: true });
    const snapshot = await layOut(other, { ...sharded, 'model-00002-of-00002.safetensors': 'y' });
    expect((await localModel('org/tiny', { ...options, offline: true })).folder).toBe(snapshot);
  });

  it('refuses a model that is in no cache, or not whole, with what to type', async () => {
    const refusal = () => localModel('org/tiny@v2', { ...options, offline: true }).catch((error: unknown) => error);
    const absent = await refusal();
    expect(absent).toBeInstanceOf(InvalidInputError);
    expect(absent).toMatchObject({
      message:
        'org/tiny at v2 cannot be fetched, because HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set: no cache of this machine has it',
      hint: expect.stringContaining('HF_HUB_OFFLINE=0 hf download org/tiny --revision v2'),
    });
    const snapshot = await layOut(other, { 'config.json': '{}' }, 'v2');
    await rm(join(shared, 'models--org--tiny/blobs'), { recursive: true }); // cleaned: the links lead nowhere
    expect((await refusal()) as Error).toMatchObject({
      message: expect.stringContaining(`${snapshot} lacks config.json, tokenizer.json, model.safetensors`),
    });
    expect(hub.log).toEqual([]);
  });
});

describe('the settings of the Python client', () => {
  const of = (env: Record<string, string>) => hubSettings({ HOME: folder, ...env });

  it('have its defaults', () => {
    expect(of({})).toEqual({
      hubUrl: 'https://huggingface.co',
      token: undefined,
      sharedCache: join(folder, '.cache/huggingface/hub'),
      offline: false,
    });
    expect(of({ HF_ENDPOINT: 'http://mirror/' }).hubUrl).toBe('http://mirror');
  });

  it.each<[Record<string, string>, string]>([
    [{ XDG_CACHE_HOME: '/x' }, '/x/huggingface/hub'],
    [{ HF_HOME: '~/hf', XDG_CACHE_HOME: '/x' }, 'HOME/hf/hub'],
    [{ HF_HOME: '$SCRATCH/hf', SCRATCH: '/s' }, '/s/hf/hub'],
    [{ HUGGINGFACE_HUB_CACHE: '/old', HF_HOME: '/h' }, '/old'],
    [{ HF_HUB_CACHE: ['$', '{SCRATCH}/new'].join(''), SCRATCH: '/s', HUGGINGFACE_HUB_CACHE: '/old' }, '/s/new'],
  ])('name the cache: %j', (env, cache) => {
    expect(of(env).sharedCache).toBe(cache.replace('HOME', folder));
  });

  it.each<[Record<string, string>, boolean]>([
    ...['1', 'true', 'YES', 'On'].map((yes): [Record<string, string>, boolean] => [{ HF_HUB_OFFLINE: yes }, true]),
    ...['0', 'false', '', 'no'].map((no): [Record<string, string>, boolean] => [{ HF_HUB_OFFLINE: no }, false]),
    [{ TRANSFORMERS_OFFLINE: '1' }, true],
    [{ HF_HUB_OFFLINE: '', TRANSFORMERS_OFFLINE: '1' }, true],
    [{ HF_HUB_OFFLINE: '0', TRANSFORMERS_OFFLINE: '1' }, false],
  ])('say whether there is a network: %j', (env, offline) => {
    expect(of(env).offline).toBe(offline);
  });

  it('have the token of the environment, else the one that `hf auth login` left', async () => {
    expect(of({ HF_TOKEN: ' hf_a\n', HUGGING_FACE_HUB_TOKEN: 'hf_b' }).token).toBe('hf_a');
    expect(of({ HF_TOKEN: '', HUGGING_FACE_HUB_TOKEN: 'hf_b' }).token).toBe('hf_b');
    for (const [env, path] of [
      [{}, '.cache/huggingface/token'],
      [{ HF_HOME: join(folder, 'hf') }, 'hf/token'],
      [{ HF_TOKEN_PATH: join(folder, 'elsewhere') }, 'elsewhere'],
    ] as const) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), `hf_of_${path}\n`);
      expect(of(env).token).toBe(`hf_of_${path}`);
      expect(of({ ...env, HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' }).token).toBeUndefined();
    }
  });
});
