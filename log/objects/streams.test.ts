import { existsSync } from 'node:fs';
import { readFile, readdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { getBlob, putBlob, putLargeBlob, streamBlob } from './blobs.ts';
import { sha256 } from './digest.ts';
import { openFolderStore } from '../../infra/store/folder.ts';
import { modelFolder, storeModelFolder } from '../inputs/model-facts.ts';
import { temporaryFolders } from '../../tests/temporary-folders.ts';

const fresh = temporaryFolders('petrel-streams-');
const bytes = new Uint8Array(9 * 1024 * 1024).map((_, i) => (i * 5 + (i >> 9)) & 255);

/** The same store for a process that cannot map its files. */
function remote(store: Store): Store {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'localPath') return () => undefined;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

async function drain(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe('a large blob', () => {
  it('has the same name in pieces and in one buffer, and can be read as a stream', async () => {
    const store = await openFolderStore(await fresh());
    const digest = await putLargeBlob(store, 'run', [bytes.subarray(0, 10), bytes.subarray(10)]);
    expect(digest).toBe(await putBlob(store, 'run', bytes));
    expect(sha256(await drain(streamBlob(store, 'run', digest)))).toBe(digest);
    expect(sha256(await getBlob(store, 'run', digest))).toBe(digest);
  });

  it('fails at the end of its stream when a bit is wrong, and at the start when it is missing', async () => {
    const store = await openFolderStore(await fresh());
    const digest = await putLargeBlob(store, 'run', [bytes]);
    const path = store.localPath(keys.blob('run', digest)) ?? '';
    const stored = await readFile(path);
    stored[stored.length - 1] = (stored.at(-1) ?? 0) ^ 1;
    await writeFile(path, stored);
    let seen = 0;
    const reading = (async () => {
      for await (const chunk of streamBlob(store, 'run', digest)) seen += chunk.length;
    })();
    await expect(reading).rejects.toMatchObject({ code: 'DamagedBlob', kind: 'pause' });
    expect(seen).toBe(bytes.length);
    await store.remove(keys.blob('run', digest));
    await expect(drain(streamBlob(store, 'run', digest))).rejects.toMatchObject({ code: 'MissingBlob', kind: 'pause' });
  });
});

describe('a model of a remote store', () => {
  it('is copied once, and the copy gets its final name only when it is complete', async () => {
    const [source, cache] = [await fresh(), await fresh()];
    for (const name of ['config.json', 'model.safetensors'])
      await writeFile(join(source, name), name === 'config.json' ? '{}' : bytes);
    const store = remote(await openFolderStore(await fresh()));
    const digest = await storeModelFolder(store, source);
    const key = keys.model(digest, 'model.safetensors');
    await store.put(key, bytes.subarray(0, bytes.length - 1));
    await expect(modelFolder(store, digest, cache)).rejects.toMatchObject({ code: 'DamagedModel' });
    expect(await readdir(join(cache, 'models', digest))).toEqual(['config.json']);
    await storeModelFolder(store, source);
    const folder = await modelFolder(store, digest, cache);
    expect(sha256(await readFile(join(folder, 'model.safetensors')))).toBe(sha256(bytes));
    await store.remove(`models/${digest}/`);
    expect(await modelFolder(store, digest, cache)).toBe(folder);
  });
});

describe('a reward model in ONNX', () => {
  it('is kept with the weights beside it, which only those fetch who use them', async () => {
    const [source, cache] = [await fresh(), await fresh()];
    const files = ['config.json', 'model.onnx', 'model.onnx.data', 'tokenizer.json'];
    for (const name of [...files, 'model.onnx.txt', 'scores.json']) await writeFile(join(source, name), name);
    const store = remote(await openFolderStore(await fresh()));
    const digest = await storeModelFolder(store, source);
    const text = await modelFolder(store, digest, cache, 'text');
    expect(await readdir(text)).toEqual(['config.json', 'tokenizer.json']);
    expect(await readdir(await modelFolder(store, digest, cache))).toEqual(files);
  });

  it('is left out of a folder with safetensors, whose digest stays what it was', async () => {
    const source = await fresh();
    for (const name of ['config.json', 'model.safetensors']) await writeFile(join(source, name), name);
    const store = await openFolderStore(await fresh());
    const digest = await storeModelFolder(store, source);
    await writeFile(join(source, 'model.onnx'), 'graph');
    expect(await storeModelFolder(store, source)).toBe(digest);
  });
});

it('a model of a missing folder store is a retryable error, and the folder is not created again', async () => {
  const [source, place] = [await fresh(), join(await fresh(), 'store')];
  await writeFile(join(source, 'config.json'), '{}');
  const store = await openFolderStore(place);
  const digest = await storeModelFolder(store, source);
  await modelFolder(store, digest, source); // from now on its files are verified
  await rename(place, `${place}-away`);
  await expect(modelFolder(store, digest, source)).rejects.toMatchObject({ kind: 'retryable', code: 'StoreGone' });
  expect(existsSync(place)).toBe(false);
  await rename(`${place}-away`, place);
  await store.remove(`models/${digest}/`);
  await expect(modelFolder(store, digest, source)).rejects.toMatchObject({ code: 'MissingModel' });
});
