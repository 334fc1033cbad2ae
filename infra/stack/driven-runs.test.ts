import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { defaultStore, rememberStore } from '../store/places.ts';
import { drivenRuns, drivesRun, forgetDrivenRun, noteDrivenRun, servesStore } from './driven-runs.ts';

const home = mkdtempSync(join(tmpdir(), 'petrel-home-'));
afterAll(() => rmSync(home, { recursive: true }));
const run = { runId: 'first-20260101-000000-abcd', store: 'file:///somewhere/store' };

describe('the runs that a stack drives', () => {
  it('are those registered in its home, each in its own store', () => {
    expect(drivesRun(home, run)).toBe(false);
    noteDrivenRun(home, { ...run, kind: 'rl' });
    expect(drivesRun(home, run)).toBe(true);
    expect(drivesRun(home, { ...run, store: 'file:///tmp/of-somebody-else' })).toBe(false);
    forgetDrivenRun(home, run.runId);
    expect(drivesRun(home, run)).toBe(false);
  });

  it('include no run whose id is a path out of the folder', () => {
    writeFileSync(join(home, 'outside.json'), JSON.stringify({ ...run, kind: 'rl' }));
    mkdirSync(join(home, 'driven'), { recursive: true });
    expect(drivesRun(home, { ...run, runId: '../outside' })).toBe(false);
  });
});

describe('a home that cannot be read at the moment', () => {
  const unreadable = expect.objectContaining({ kind: 'retryable', code: 'HomeUnreadable' });
  const other = mkdtempSync(join(tmpdir(), 'petrel-home-'));
  afterAll(() => rmSync(other, { recursive: true }));

  it('does not make a run unknown, which would fail it', () => {
    // A folder in the place of the file, because every error but "missing" counts, also for root.
    mkdirSync(join(other, 'driven', `${run.runId}.json`), { recursive: true });
    expect(() => drivesRun(other, run)).toThrow(unreadable);
    expect(() => drivenRuns(other)).toThrow(unreadable);
    rmSync(join(other, 'driven'), { recursive: true });
    expect(drivesRun(other, run)).toBe(false);
  });

  it('does not make a store unknown, and its list is not replaced by a shorter one', () => {
    mkdirSync(join(other, 'stores.json'));
    expect(() => servesStore(other, 's3://bucket/mine')).toThrow(unreadable);
    expect(() => rememberStore(other, 's3://bucket/mine')).toThrow(unreadable);
    rmSync(join(other, 'stores.json'), { recursive: true });
    expect(servesStore(other, 's3://bucket/mine')).toBe(false);
  });
});

it('a stack serves the default store, the stores in its home’s list and those of its runs', () => {
  const own = pathToFileURL(defaultStore(home)).href;
  const others = ['s3://bucket/mine', run.store];
  expect([own, ...others].map((url) => servesStore(home, url))).toEqual([true, false, false]);
  rememberStore(home, 's3://bucket/mine');
  noteDrivenRun(home, { ...run, kind: 'rl' });
  expect([own, ...others].map((url) => servesStore(home, url))).toEqual([true, true, true]);
  expect(servesStore(home, 'file:///tmp/of-somebody-else')).toBe(false);
});
