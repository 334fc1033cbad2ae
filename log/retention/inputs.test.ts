import { describe, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import { storeDataset } from '../inputs/datasets.ts';
import { digestOf, sha256 } from '../objects/digest.ts';
import { encodeRecord } from '../objects/records.ts';
import { keepInputs, passOverInputs } from './inputs.ts';

const graceMs = 60_000;
const at = (minutes: number) => new Date(Date.parse('2026-01-02T03:04:05Z') + minutes * 60_000);
const [config, rows] = [new TextEncoder().encode('{}'), new TextEncoder().encode('{"prompt":"1+1="}\n')];
const modelFiles = [{ name: 'config.json', bytes: config.byteLength, sha256: sha256(config) }];
const inputs = {
  model: digestOf({ format: 1, files: modelFiles }),
  train: digestOf({ format: 1, files: { 'rows.jsonl': sha256(rows) } }),
  trainRows: 4,
};
const folders = [`datasets/${inputs.train}/`, `models/${inputs.model}/`];

async function stored(): Promise<MemoryStore> {
  const store = new MemoryStore();
  await store.put(keys.model(inputs.model, 'config.json'), config);
  await store.put(keys.model(inputs.model, 'manifest.json'), encodeRecord({ format: 1, files: modelFiles }));
  await storeDataset(store, { 'rows.jsonl': rows });
  return store;
}

async function named(store: MemoryStore): Promise<void> {
  const record = {
    format: recordFormat,
    runId: 'toy-1',
    revision: 1,
    fromPosition: 0,
    recipe: {},
    inputs,
    createdAt: '',
  };
  await store.create(keys.revision('toy-1', 1), encodeRecord(record));
}

describe('models and datasets', () => {
  it('are removed when no run has named them for the whole grace period', async () => {
    const store = await stored();
    expect((await passOverInputs(store, { now: at(0), graceMs })).removed).toEqual([]);
    expect((await passOverInputs(store, { now: at(0.5), graceMs })).removed).toEqual([]);
    expect([...(await passOverInputs(store, { now: at(2), graceMs })).removed].sort()).toEqual(folders);
    expect([...store.objects.keys()].filter((key) => !key.startsWith('janitor/'))).toEqual([]);
  });

  it('stay while a run names them, and are removed after that run was deleted', async () => {
    const store = await stored();
    await named(store);
    for (const minute of [0, 2, 4])
      expect(await passOverInputs(store, { now: at(minute), graceMs })).toEqual({ removed: [], unnamed: [] });
    await store.create(keys.tombstone('toy-1'), new Uint8Array());
    await passOverInputs(store, { now: at(6), graceMs });
    expect((await passOverInputs(store, { now: at(8), graceMs })).removed).toHaveLength(2);
  });

  it('are kept for a run that is starting with them, even before a listing shows that run', async () => {
    const store = await stored();
    await passOverInputs(store, { now: at(0), graceMs });
    expect(await keepInputs(store, inputs)).toBe(true);
    expect((await passOverInputs(store, { now: at(2), graceMs })).removed).toEqual([]);
    store.holdListings();
    await named(store);
    expect((await passOverInputs(store, { now: at(2.5), graceMs })).removed).toEqual([]);
    store.refresh();
    expect(await passOverInputs(store, { now: at(9), graceMs })).toEqual({ removed: [], unnamed: [] });
  });

  it('that are being removed make the new run wait, which then stores them again', async () => {
    const store = await stored();
    await passOverInputs(store, { now: at(0), graceMs });
    let asked: Promise<boolean> | undefined;
    store.beforeChange = (key) => {
      if (folders.includes(key)) asked ??= keepInputs(store, inputs);
    };
    await passOverInputs(store, { now: at(2), graceMs });
    expect(await asked).toBe(false);
    expect(await keepInputs(store, inputs)).toBe(true);
  });

  it('are removed by the next janitor when the first one died during the removal', async () => {
    const store = await stored();
    await passOverInputs(store, { now: at(0), graceMs });
    store.beforeChange = (key) => {
      if (folders.includes(key)) throw new Error('died');
    };
    await expect(passOverInputs(store, { now: at(2), graceMs })).rejects.toThrow('died');
    store.beforeChange = () => {};
    await expect(keepInputs(store, inputs, 50)).rejects.toMatchObject({ code: 'InputsBeingRemoved' });
    await passOverInputs(store, { now: at(3), graceMs });
    expect(await store.list('models/')).toEqual([]);
    expect(await keepInputs(store, inputs)).toBe(true);
  });
});

describe('a user’s own files beside them', () => {
  const theirs = {
    'models/llama-3-8b/config.json': '{}',
    'datasets/gsm8k/train.jsonl': '{}',
    [`models/${'a'.repeat(64)}/config.json`]: '{}',
    [`models/${'b'.repeat(64)}/manifest.json`]: '{"format":1,"files":[]}',
    [`datasets/${'c'.repeat(64)}/rows.jsonl`]: '{}',
    [`models/${inputs.model}/notes.txt`]: 'mine',
  };

  it('stay: other names, digests that match no files, files beside petrel’s', async () => {
    const store = await stored();
    for (const [key, text] of Object.entries(theirs)) await store.put(key, new TextEncoder().encode(text));
    for (const minute of [0, 2, 4, 6]) await passOverInputs(store, { now: at(minute), graceMs });
    expect([...store.objects.keys()].filter((key) => !key.startsWith('janitor/')).sort()).toEqual(
      Object.keys(theirs).sort(),
    );
  });

  it('stay when an older petrel version had marked them or had started to remove them', async () => {
    const store = await stored();
    for (const [key, text] of Object.entries(theirs)) await store.put(key, new TextEncoder().encode(text));
    const noted = Object.keys(theirs).map((key) => key.slice(0, key.lastIndexOf('/') + 1));
    const unnamed = noted.map((folder) => ({ folder, since: at(0).toISOString() }));
    await store.create(
      keys.inputs(1),
      encodeRecord({ format: 1, n: 1, unnamed, removing: [...noted, 'runs/', '../../infra/'] }),
    );
    for (const minute of [2, 4]) await passOverInputs(store, { now: at(minute), graceMs });
    expect([...store.objects.keys()].filter((key) => !key.startsWith('janitor/')).sort()).toEqual(
      Object.keys(theirs).sort(),
    );
  });
});
