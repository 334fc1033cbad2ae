/**
 * Models and datasets that no run of a store names. What is unnamed is noted, and removed when it still is after the
 * grace. Between "being removed" and "gone" lies an entry of its own, so that a run which starts from one of them at that
 * moment waits, and stores it again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RetryableError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { inputsEntry, recordFormat, revisionRecord, scheduleRecord } from '../../core/records/schema.ts';
import type { InputsEntry, RunInputs } from '../../core/records/schema.ts';
import { newestOf } from '../store/dense.ts';
import { encodeRecord, needRecord } from '../store/records.ts';
import type { PassOptions } from './pass.ts';

const roots = ['models/', 'datasets/'] as const;

export interface InputsPass {
  /** Folders, as `models/<digest>/`. */
  readonly removed: readonly string[];
  readonly unnamed: readonly string[];
}

export async function passOverInputs(
  store: Store,
  { now, graceMs, dryRun = false, signal }: PassOptions,
): Promise<InputsPass> {
  const named = await namedInputs(store);
  const there = (
    await Promise.all(
      roots.map(async (root) =>
        (await store.children(root)).filter((name) => name.endsWith('/')).map((name) => root + name),
      ),
    )
  ).flat();
  const since = new Map((await readInputs(store)).unnamed.map((one) => [one.folder, one.since]));
  const unnamed = there
    .filter((folder) => !named.has(folder))
    .map((folder) => ({ folder, since: since.get(folder) ?? now.toISOString() }));
  const due = unnamed
    .filter((one) => since.has(one.folder) && now.getTime() - Date.parse(one.since) >= graceMs)
    .map(({ folder }) => folder);
  if (dryRun)
    return { removed: due, unnamed: unnamed.map(({ folder }) => folder).filter((folder) => !due.includes(folder)) };
  const entry = await changeInputs(store, (newest) => {
    const still = new Set(newest.unnamed.map(({ folder }) => folder));
    // Somebody has asked to keep it since it was read.
    const isKept = (folder: string) => since.has(folder) && !still.has(folder);
    const next = {
      unnamed: unnamed.filter(({ folder }) => !due.includes(folder) && !isKept(folder)),
      removing: [...newest.removing, ...due.filter((folder) => !isKept(folder) && !newest.removing.includes(folder))],
    };
    return JSON.stringify(next) === JSON.stringify({ unnamed: newest.unnamed, removing: newest.removing })
      ? undefined
      : next;
  });
  for (const folder of entry.removing) {
    signal?.throwIfAborted();
    await store.remove(folder);
  }
  if (entry.removing.length > 0)
    await changeInputs(store, ({ unnamed: left, removing }) => ({
      unnamed: left,
      removing: removing.filter((folder) => !entry.removing.includes(folder)),
    }));
  return { removed: entry.removing, unnamed: entry.unnamed.map(({ folder }) => folder) };
}

/**
 * To be called when a run's inputs are stored and the run does not name them yet. False: one of them was being removed,
 * and must be stored again. Throws RetryableError `InputsBeingRemoved` when a removal does not end.
 */
export async function keepInputs(store: Store, inputs: RunInputs, waitMs = 10_000): Promise<boolean> {
  const folders = foldersOf(inputs);
  const entry = await changeInputs(store, ({ unnamed, removing }) => {
    const left = unnamed.filter(({ folder }) => !folders.includes(folder));
    return left.length === unnamed.length ? undefined : { unnamed: left, removing };
  });
  if (!entry.removing.some((folder) => folders.includes(folder))) return true;
  const until = Date.now() + waitMs;
  while ((await readInputs(store)).removing.some((folder) => folders.includes(folder))) {
    if (Date.now() > until)
      throw new RetryableError(
        'InputsBeingRemoved',
        `${store.url}: the janitor is removing a model or dataset that this run needs`,
        { hint: 'petrel gc ends what it began; then start the run again' },
      );
    await delay(100);
  }
  return false;
}

/** Of every run that was not deleted, and every schedule that was not removed. A listing may lag behind by less than the grace. */
async function namedInputs(store: Store): Promise<ReadonlySet<string>> {
  const named = new Set<string>();
  for (const name of await store.children(keys.runs)) {
    const runId = name.replace('/', '');
    if ((await store.head(keys.tombstone(runId))) !== undefined) continue;
    const newest = await newestOf(store, (n) => keys.revision(runId, n));
    for (let n = 1; n <= newest; n++)
      for (const folder of foldersOf((await needRecord(store, keys.revision(runId, n), revisionRecord)).record.inputs))
        named.add(folder);
  }
  for (const name of await store.children(keys.schedules)) {
    const schedule = name.replace('/', '');
    const newest = await newestOf(store, (n) => keys.schedule(schedule, n));
    if (newest === 0) continue;
    const { state, definition } = (await needRecord(store, keys.schedule(schedule, newest), scheduleRecord)).record;
    if (state !== 'removed') for (const folder of foldersOf(definition.inputs)) named.add(folder);
  }
  return named;
}

function foldersOf({ model, reference, train, validation }: RunInputs): string[] {
  const present = (digest: Digest | undefined) => digest !== undefined;
  return [
    ...[model, reference].filter(present).map((digest) => `models/${digest}/`),
    ...[train, validation].filter(present).map((digest) => `datasets/${digest}/`),
  ];
}

async function readInputs(store: Store): Promise<InputsEntry> {
  const n = await newestOf(store, keys.inputs);
  return n === 0
    ? { format: recordFormat, n: 0, unnamed: [], removing: [] }
    : (await needRecord(store, keys.inputs(n), inputsEntry)).record;
}

async function changeInputs(
  store: Store,
  change: (entry: InputsEntry) => Pick<InputsEntry, 'unnamed' | 'removing'> | undefined,
): Promise<InputsEntry> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const entry = await readInputs(store);
    const changed = change(entry);
    if (changed === undefined) return entry;
    const next: InputsEntry = { ...entry, ...changed, n: entry.n + 1 };
    if ((await store.create(keys.inputs(next.n), encodeRecord(next))) === 'created') return next;
  }
  throw new RetryableError('RetentionContention', `${store.url}: many writers change what is kept at once`);
}
