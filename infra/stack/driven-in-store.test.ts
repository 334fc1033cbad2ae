import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { makeRunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { drivenNote } from '../../core/records/schema.ts';
import { openStore } from '../store/open.ts';
import { encodeRecord, needRecord } from '../../log/objects/records.ts';
import { StoreRuns } from './driven-in-store.ts';
import type { SharedStack } from './servers.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-driven-'));
afterAll(() => rmSync(folder, { recursive: true }));

let store: Store;
let shared: SharedStack;
let count = 0;
beforeEach(async () => {
  store = await openStore(join(folder, `store-${++count}`));
  shared = { name: 'team', store: store.url, key: 'ab'.repeat(32) };
  await store.create(keys.stackClaim('team', 1), encodeRecord({}));
});

const runId = makeRunId('first', new Date('2026-01-01T00:00:00Z'), 'abcd');
const run = { runId, store: 's3://elsewhere/runs', kind: 'rl' } as const;
const on = (machine: string, of: Partial<SharedStack> = {}) => new StoreRuns({ ...shared, ...of }, machine);
const noteKeys = () => store.list(keys.drivenRuns('team'));

describe('the runs of a stack of several machines', () => {
  it('are noted by one machine and driven by each', async () => {
    const [first, second] = [on('a'), on('b')];
    expect(await second.drives(run)).toBe(false);
    await first.note(run);
    expect(await second.drives(run)).toBe(true);
    expect(await second.drives({ ...run, store: 's3://other/runs' })).toBe(false);
    expect(await second.all()).toEqual([{ ...run, isStarting: false, notes: await noteKeys() }]);
    for (const known of await second.all()) await second.forget(known);
    expect([await first.all(), await second.all(), await noteKeys()]).toEqual([[], [], []]);
    expect(await second.drives(run)).toBe(false);
  });

  it('include a run that a command starts again while another machine forgets its end', async () => {
    const [first, second] = [on('a'), on('b')];
    await first.note(run);
    const [ended] = await second.all();
    await first.note(run);
    if (ended !== undefined) await second.forget(ended);
    expect(await second.all()).toMatchObject([run]);
  });

  it('are starting while the command lives, or for a while on another machine, until it has started them', async () => {
    const [first, second] = [on('a'), on('b')];
    await first.noteToStart(run);
    for (const machine of [first, second]) expect(await machine.all()).toMatchObject([{ isStarting: true }]);
    await first.note(run);
    for (const machine of [first, second]) expect(await machine.all()).toMatchObject([{ isStarting: false }]);
  });

  it('include none that somebody without the key has noted, changed or copied to another place', async () => {
    await on('x', { key: 'cd'.repeat(32) }).note(run);
    expect(await on('a').all()).toEqual([]);
    expect(await on('a').drives(run)).toBe(false);
    await on('a').note(run);
    const own = (await on('a').all())[0]?.notes[0] ?? '';
    const { record } = await needRecord(store, own, drivenNote);
    const other = makeRunId('other', new Date('2026-01-01T00:00:00Z'), 'abcd');
    const forged = [
      { ...record, note: '0'.repeat(16), store: 's3://mine/runs' },
      { ...record, note: '1'.repeat(16), runId: other },
    ];
    for (const note of forged) await store.create(keys.drivenRun('team', note.runId, note.note), encodeRecord(note));
    await store.create(keys.drivenRun('team', other, record.note), encodeRecord(record));
    await store.create(keys.drivenRun('team', runId, '2'.repeat(16)), new TextEncoder().encode('no record'));
    expect(await on('a').all()).toEqual([{ ...run, isStarting: false, notes: [own] }]);
    expect(await on('a').drives({ ...run, store: 's3://mine/runs' })).toBe(false);
    expect(await on('a').drives({ ...run, runId: other })).toBe(false);
  });

  it('are not unknown while the disk of the store is not mounted', async () => {
    await on('a').note(run);
    const path = join(folder, `store-${count}`);
    renameSync(path, `${path}-away`);
    for (const isMountPoint of [false, true]) {
      if (isMountPoint) mkdirSync(path);
      await expect(on('b').drives(run)).rejects.toMatchObject({ kind: 'retryable', code: 'StoreGone' });
      await expect(on('b').all()).rejects.toMatchObject({ kind: 'retryable', code: 'StoreGone' });
    }
    expect(readdirSync(path)).toEqual([]);
  });
});
