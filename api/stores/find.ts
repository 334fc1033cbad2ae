/** Finds the run that a word of the command line names, in every store that this machine has used. */
import { errorToJson, TerminalError } from '../../core/errors.ts';
import { runIdPattern, runNameOf } from '../../core/ids.ts';
import type { RunId } from '../../core/ids.ts';
import { nearest } from '../../core/nearest.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { runRecord, tombstone } from '../../core/records/schema.ts';
import type { RunRecord } from '../../core/records/schema.ts';
import { openExistingStore, openStore } from '../../infra/store/open.ts';
import { knownStores } from '../../infra/store/places.ts';
import { readRecord } from '../../log/objects/records.ts';
import { RunLog } from '../../log/run/run-log.ts';
import type { ApiContext } from '../context.ts';
import { awayError, awayTexts, runsAway } from './stores-away.ts';

export type { RunLog };

export interface FoundRun {
  readonly runId: RunId;
  readonly log: RunLog;
  readonly record: RunRecord;
}

/** A place where a run id was seen. */
export interface ListedRun {
  readonly runId: RunId;
  readonly store: Store;
}

/**
 * The existing stores of this machine. A store that is gone is skipped with a notice. The default store is skipped
 * silently, because the first run creates it.
 */
export async function openKnownStores(home: string, notice: (text: string) => void): Promise<Store[]> {
  const stores: Store[] = [];
  const away = await runsAway(home).catch((error: unknown) => {
    notice(`it is not known which runs wait for a store: ${errorToJson(error).message}`);
    return [];
  });
  for (const text of awayTexts(away)) notice(text);
  for (const [index, { url, there }] of knownStores(home).entries()) {
    try {
      if (there) stores.push(await openStore(url, 'refuse'));
      else if (index > 0 && !away.some(({ store }) => store === url))
        notice(`the store ${url} is gone; its runs are not shown`);
    } catch (error) {
      notice(`the store ${url} is left out: ${errorToJson(error).message}`);
    }
  }
  return stores;
}

/** All claimed run ids, newest first; deleted ones are among them. */
export async function listRunIds(stores: readonly Store[]): Promise<ListedRun[]> {
  const lists = await Promise.all(
    stores.map(async (store) =>
      (await store.children(keys.runs)).map((name) => ({ runId: name.replace(/\/$/, ''), store })),
    ),
  );
  return lists
    .flat()
    .filter(({ runId }) => runIdPattern.test(runId))
    .sort((a, b) => (momentOf(a.runId) < momentOf(b.runId) ? 1 : -1));
}

/** The run of a claimed id. Undefined when it was deleted, or when its id is just being claimed. */
export async function openRun({ runId, store }: ListedRun): Promise<FoundRun | undefined> {
  if ((await store.head(keys.tombstone(runId))) !== undefined) return undefined;
  const stored = await readRecord(store, keys.run(runId), runRecord);
  return stored && { runId, log: new RunLog(store, runId), record: stored.record };
}

/**
 * The run with this full id, or the newest run with this name. `store`: search only this store. Throws TerminalError
 * `NotFound` with the nearest word.
 */
export async function findRun(word: string, { home, notice }: ApiContext, store?: string): Promise<FoundRun> {
  const stores = store === undefined ? await openKnownStores(home, notice) : [await openExistingStore(store)];
  const listed = await listRunIds(stores);
  const named = [
    ...listed.filter(({ runId }) => runId === word),
    ...listed.filter(({ runId }) => runNameOf(runId) === word),
  ];
  for (const one of named) {
    const run = await openRun(one);
    if (run !== undefined) return run;
    if (one.runId === word) throw (await awayError(word, home)) ?? (await wasDeleted(one));
  }
  if (named.length > 0)
    throw new TerminalError('NotFound', `the run ${word} was deleted`, { hint: 'petrel ls lists the runs' });
  throw (
    (await awayError(word, home)) ??
    notFound(
      word,
      listed.map(({ runId }) => runId),
    )
  );
}

function notFound(word: string, runIds: readonly RunId[]): TerminalError {
  const names = [...new Set(runIds.map((runId) => runNameOf(runId) ?? runId))];
  const meant = nearest(word, runIdPattern.test(word) ? runIds : names) ?? names.find((name) => name.startsWith(word));
  const hint =
    meant !== undefined
      ? `did you mean ${meant}?`
      : names.length === 0
        ? 'there is no run yet: petrel run <recipe> starts one'
        : 'petrel ls lists the runs';
  return new TerminalError('NotFound', `there is no run ${word}`, { hint });
}

async function wasDeleted({ runId, store }: ListedRun): Promise<TerminalError> {
  const stored = await readRecord(store, keys.tombstone(runId), tombstone).catch(() => undefined);
  const when = stored === undefined ? '' : ` on ${stored.record.removedAt.slice(0, 10)}`;
  return new TerminalError('NotFound', `${runId} was deleted${when}`, { hint: 'petrel ls lists the runs' });
}

/** The random part orders ids of the same second. */
function momentOf(runId: RunId): string {
  const match = runIdPattern.exec(runId);
  return `${match?.[2] ?? ''} ${runId}`;
}
