/**
 * Models and datasets that no run of a store names. An unnamed folder is marked, and removed if it is still unnamed
 * after the grace period. An entry of its own records that a folder is being removed, so that a run which is starting
 * with this folder waits and stores it again. Only petrel's own folders are removed: `models/` may hold folders of the
 * user too.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { canonicalJson } from '../../core/canonical.ts';
import { RetryableError, TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { isInputFolder } from '../../core/records/own-keys.ts';
import { inputsEntry, recordFormat } from '../../core/records/schema.ts';
import type { InputsEntry, RunInputs } from '../../core/records/schema.ts';
import { newestListed } from '../objects/dense.ts';
import { encodeRecord, needRecord } from '../objects/records.ts';
import { filesOfInput } from './input-files.ts';
import { findNamers, foldersOf } from './named-inputs.ts';
import type { PassOptions } from './pass.ts';

const roots = ['models/', 'datasets/'] as const;

export interface InputsPass {
  /** Folders, as `models/<digest>/`. */
  readonly removed: readonly string[];
  readonly unnamed: readonly string[];
  /** Why a folder could not be removed. */
  readonly problem?: string;
}

export async function passOverInputs(store: Store, options: PassOptions): Promise<InputsPass> {
  const { now, graceMs, dryRun = false } = options;
  const before = await readInputs(store);
  const since = new Map(before.unnamed.map((one) => [one.folder, one.since]));
  const isDue = (folder: string) => {
    const moment = since.get(folder);
    return moment !== undefined && now.getTime() - Date.parse(moment) >= graceMs;
  };
  // A starting run pins its folders if they are marked as unnamed. So during the grace period other namers are not
  // searched again.
  const folders = await inputFolders(store);
  const candidates = folders.filter((folder) => !since.has(folder) || isDue(folder));
  const namedBy = await findNamers(store, candidates, before.namedBy);
  const unnamed = folders.filter((folder) => namedBy[folder] === undefined);
  const due = await ownFolders(store, unnamed.filter(isDue));
  const waiting = unnamed
    .filter((folder) => !isDue(folder))
    .map((folder) => ({ folder, since: since.get(folder) ?? now.toISOString() }));
  if (dryRun) return { removed: [...due.keys()], unnamed: waiting.map(({ folder }) => folder) };
  const entry = await changeInputs(store, (newest) => {
    const still = new Set(newest.unnamed.map(({ folder }) => folder));
    // A run that is starting has pinned the folder since the entry was read.
    const isKept = (folder: string) => since.has(folder) && !still.has(folder);
    const going = [...due].filter(([folder]) => !isKept(folder) && !newest.removing.includes(folder));
    const next = {
      unnamed: waiting.filter(({ folder }) => !isKept(folder)),
      removing: [...newest.removing, ...going.map(([folder]) => folder)],
      namedBy,
      files: { ...newest.files, ...Object.fromEntries(going) },
    };
    const parts = ({
      unnamed: noted,
      removing,
      namedBy: namers,
    }: Pick<InputsEntry, 'unnamed' | 'removing' | 'namedBy'>) => canonicalJson([noted, removing, namers]);
    return parts(next) === parts(newest) ? undefined : next;
  });
  return { ...(await endRemovals(store, entry, options)), unnamed: entry.unnamed.map(({ folder }) => folder) };
}

/** Folders of models and datasets. Folders with other names are the user's. */
async function inputFolders(store: Store): Promise<string[]> {
  const folders = await Promise.all(roots.map(async (root) => (await store.children(root)).map((name) => root + name)));
  return folders.flat().filter(isInputFolder);
}

/**
 * The folders that petrel wrote, with the names of their files. The others are checked again after another grace
 * period.
 */
async function ownFolders(store: Store, candidates: readonly string[]): Promise<ReadonlyMap<string, string[]>> {
  const own = new Map<string, string[]>();
  for (const folder of candidates) {
    const files = await filesOfInput(store, folder);
    if (files !== undefined) own.set(folder, [...files]);
  }
  return own;
}

/** Removes the folders that `entry` lists as being removed, and records that they are gone. */
async function endRemovals(
  store: Store,
  entry: InputsEntry,
  { signal }: PassOptions,
): Promise<Pick<InputsPass, 'removed' | 'problem'>> {
  if (entry.removing.length === 0) return { removed: [] };
  await store.settle();
  const removed: string[] = [];
  let problem: string | undefined;
  for (const folder of entry.removing) {
    signal?.throwIfAborted();
    // Entries of older petrel versions list no files.
    const files = new Set(entry.files[folder] ?? (await filesOfInput(store, folder)));
    try {
      await store.remove(folder, (key) => files.has(key.slice(folder.length)));
      if (files.size > 0) removed.push(folder);
    } catch (error) {
      if (!(error instanceof TerminalError && error.code === 'OutsideStore')) throw error;
      problem ??= error.message;
    }
  }
  const isOver = (folder: string) => entry.removing.includes(folder);
  await changeInputs(store, ({ removing, files }) => ({
    removing: removing.filter((folder) => !isOver(folder)),
    files: Object.fromEntries(Object.entries(files).filter(([folder]) => !isOver(folder))),
  }));
  return { removed, ...(problem === undefined ? {} : { problem }) };
}

/**
 * Call this after a run's inputs are stored and before its record names them. False: one of them was being removed and
 * must be stored again. Throws RetryableError `InputsBeingRemoved` when a removal does not end.
 */
export async function keepInputs(store: Store, inputs: RunInputs, waitMs = 10_000): Promise<boolean> {
  const folders = foldersOf(inputs);
  const entry = await changeInputs(store, ({ unnamed }) => {
    const left = unnamed.filter(({ folder }) => !folders.includes(folder));
    return left.length === unnamed.length ? undefined : { unnamed: left };
  });
  if (!entry.removing.some((folder) => folders.includes(folder))) return true;
  const until = Date.now() + waitMs;
  while ((await readInputs(store)).removing.some((folder) => folders.includes(folder))) {
    if (Date.now() > until)
      throw new RetryableError(
        'InputsBeingRemoved',
        `${store.url}: the janitor is removing a model or dataset that this run needs`,
        { hint: 'petrel gc completes the removal; then start the run again' },
      );
    await delay(100);
  }
  return false;
}

async function readInputs(store: Store): Promise<InputsEntry> {
  const n = await newestListed(store, keys.allInputs, keys.inputs);
  return n === 0
    ? { format: recordFormat, n: 0, unnamed: [], removing: [], files: {}, namedBy: {} }
    : (await needRecord(store, keys.inputs(n), inputsEntry)).record;
}

async function changeInputs(
  store: Store,
  change: (entry: InputsEntry) => Partial<Pick<InputsEntry, 'unnamed' | 'removing' | 'files' | 'namedBy'>> | undefined,
): Promise<InputsEntry> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const entry = await readInputs(store);
    const changed = change(entry);
    if (changed === undefined) return entry;
    const next: InputsEntry = { ...entry, ...changed, n: entry.n + 1 };
    if ((await store.create(keys.inputs(next.n), encodeRecord(next))) === 'created') return next;
  }
  throw new RetryableError(
    'RetentionContention',
    `${store.url}: too many writers change the list of kept inputs at the same time`,
  );
}
