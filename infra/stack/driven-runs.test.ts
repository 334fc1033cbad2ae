import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { defaultStore, rememberStore } from '../store/places.ts';
import { drivenRuns, servesStore } from './driven-runs.ts';

const home = mkdtempSync(join(tmpdir(), 'petrel-home-'));
afterAll(() => rmSync(home, { recursive: true }));
const run = { runId: 'first-20260101-000000-abcd', store: 'file:///somewhere/store' };

describe('the runs that a stack drives', () => {
  it('are those registered in its home, each in its own store', async () => {
    expect(await drivenRuns(home).drives(run)).toBe(false);
    await drivenRuns(home).note({ ...run, kind: 'rl' });
    expect(await drivenRuns(home).drives(run)).toBe(true);
    expect(await drivenRuns(home).drives({ ...run, store: 'file:///tmp/of-somebody-else' })).toBe(false);
    for (const known of await drivenRuns(home).all()) await drivenRuns(home).forget(known);
    expect(await drivenRuns(home).drives(run)).toBe(false);
  });

  it('include a run that a command starts again while its end is forgotten', async () => {
    const runs = drivenRuns(home);
    await runs.note({ ...run, kind: 'rl' });
    const [ended] = await runs.all();
    if (ended === undefined) throw new Error('nothing is noted');
    await runs.note({ ...run, kind: 'rl' });
    await runs.forget(ended);
    expect(await runs.drives(run)).toBe(true);
    for (const known of await runs.all()) await runs.forget(known);
    expect(await runs.drives(run)).toBe(false);
  });

  it('are forgotten when an older version noted them', async () => {
    writeFileSync(join(home, 'driven', `${run.runId}.json`), JSON.stringify({ ...run, kind: 'rl' }));
    for (const known of await drivenRuns(home).all()) await drivenRuns(home).forget(known);
    expect(await drivenRuns(home).drives(run)).toBe(false);
  });

  it('include no run whose id is a path out of the folder', async () => {
    writeFileSync(join(home, 'outside.json'), JSON.stringify({ ...run, kind: 'rl' }));
    mkdirSync(join(home, 'driven'), { recursive: true });
    expect(await drivenRuns(home).drives({ ...run, runId: '../outside' })).toBe(false);
  });
});

describe('a home that cannot be read at the moment', () => {
  const unreadable = expect.objectContaining({ kind: 'retryable', code: 'HomeUnreadable' });
  const other = mkdtempSync(join(tmpdir(), 'petrel-home-'));
  afterAll(() => rmSync(other, { recursive: true }));

  it('does not make a run unknown, which would fail it', async () => {
    // A folder in the place of the file, because every error but "missing" counts, also for root.
    mkdirSync(join(other, 'driven', `${run.runId}.json`), { recursive: true });
    await expect(drivenRuns(other).drives(run)).rejects.toEqual(unreadable);
    await expect(drivenRuns(other).all()).rejects.toEqual(unreadable);
    rmSync(join(other, 'driven'), { recursive: true });
    expect(await drivenRuns(other).drives(run)).toBe(false);
  });

  it('does not make a store unknown, and its list is not replaced by a shorter one', async () => {
    mkdirSync(join(other, 'stores.json'));
    await expect(servesStore(other, 's3://bucket/mine')).rejects.toEqual(unreadable);
    expect(() => rememberStore(other, 's3://bucket/mine')).toThrow(unreadable);
    rmSync(join(other, 'stores.json'), { recursive: true });
    expect(await servesStore(other, 's3://bucket/mine')).toBe(false);
  });
});

it('a stack serves the default store, the stores in its home’s list and those of its runs', async () => {
  const own = pathToFileURL(defaultStore(home)).href;
  const others = ['s3://bucket/mine', run.store];
  expect(await Promise.all([own, ...others].map((url) => servesStore(home, url)))).toEqual([true, false, false]);
  rememberStore(home, 's3://bucket/mine');
  await drivenRuns(home).note({ ...run, kind: 'rl' });
  expect(await Promise.all([own, ...others].map((url) => servesStore(home, url)))).toEqual([true, true, true]);
  expect(await servesStore(home, 'file:///tmp/of-somebody-else')).toBe(false);
});
