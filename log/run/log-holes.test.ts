import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { harm } from '../../tests/damage.ts';
import { buildRun } from '../../tests/run-builder.ts';
import { openFolderStore } from '../../infra/store/folder.ts';
import { findHole } from './log-holes.ts';
import { RunLog } from './run-log.ts';

/**
 * Finds the hole of a run of four iterations, with checkpoints of 1 and 4 and a validation of 4, after these records
 * were lost.
 */
async function after(...lost: ((runId: string) => string)[]): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'petrel-holes-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const store = await openFolderStore(folder);
  const { runId } = await buildRun(store, { done: 4, checkpoints: [1, 4], evaluations: [4] });
  const all = await store.list(keys.all(runId));
  for (const keyOf of lost) harm(store, all.find((key) => key.startsWith(keyOf(runId))) ?? keyOf(runId), 'loss');
  const log = new RunLog(store, runId);
  return (await findHole(log, await log.head()))?.message.replace(`runs/${runId}/`, '');
}

const batch = (k: number) => (runId: string) => keys.batch(runId, 1, k);
const update = (k: number) => (runId: string) => keys.update(runId, 1, k);
const evaluation = (runId: string) => keys.evaluation(runId, 1, 4);
const checkpoint = (runId: string) => `${keys.checkpoints(runId)}4-`;

describe('the end of a log', () => {
  it('is accepted when no later object exists', async () => {
    expect(await after()).toBeUndefined();
    // A checkpoint may be written before its update is committed.
    expect(await after(update(4), evaluation)).toBeUndefined();
    expect(await after(batch(4), update(4), evaluation, checkpoint)).toBeUndefined();
  });

  it('is a hole when objects that follow the lost records exist', async () => {
    expect(await after(update(3), update(4))).toBe('terms/1/3/update.json: missing, although iteration 4 was started');
    expect(await after(update(4))).toBe('terms/1/4/update.json: missing, although policy 4 was validated');
    expect(await after(batch(4), update(4), evaluation)).toBe(
      'terms/1/4/batch.json: missing, although there is a checkpoint of iteration 4',
    );
    expect(await after((runId) => keys.term(runId, 1))).toBe(
      'terms/1/term.json: missing, although term 1 was written to',
    );
  });
});

describe('a head that was read before another process went on', () => {
  it.each([0, 1, 2, 3])('is no hole: %i iterations were committed then', async (done) => {
    const folder = await mkdtemp(join(tmpdir(), 'petrel-holes-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const store = await openFolderStore(folder);
    const before = await buildRun(store, { done });
    const head = await new RunLog(store, before.runId).head();
    await rm(join(folder, keys.all(before.runId)), { recursive: true });
    const { runId } = await buildRun(store, { done: 4, checkpoints: [1, 4], evaluations: [4] });
    expect(runId).toBe(before.runId);
    expect(await findHole(new RunLog(store, runId), head)).toBeUndefined();
    expect(await findHole(new RunLog(store, runId), undefined)).toBeUndefined();
  });
});

describe('a chain of terms', () => {
  it.each([
    ['its own parent', { parent: { term: 1, position: 1, record: 'a'.repeat(64) } }, 'found term 1'],
    ['a later parent', { parent: { term: 2, position: 1, record: 'a'.repeat(64) } }, 'found term 2'],
    ['the number of another term', { term: 2 }, 'expected term 1, found term 2'],
  ])('with %s is refused as damaged', async (_, change, message) => {
    const folder = await mkdtemp(join(tmpdir(), 'petrel-holes-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const store = await openFolderStore(folder);
    const { runId } = await buildRun(store, { done: 1 });
    const file = join(folder, keys.term(runId, 1));
    const { check: _check, ...term } = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(file, JSON.stringify({ ...term, ...change }));
    const log = new RunLog(store, runId);
    for (const read of [() => log.chain(), () => log.first(), () => log.head(), () => log.evaluations.all()])
      await expect(read()).rejects.toMatchObject({ code: 'DamagedRecord', message: expect.stringContaining(message) });
  });
});
