/**
 * Blobs that no record names: what a writer left that died before it could name them. While a run is worked on they may
 * be named at any moment, so they are looked for when it has ended, and removed when it still has at a later pass. Whoever
 * goes on with the run ends the removal first.
 */
import { keys } from '../../core/records/keys.ts';
import type { RetentionEntry, StatusEntry } from '../../core/records/schema.ts';
import { faultPoint } from '../faults/index.ts';
import type { RunLog } from '../store/run-log.ts';
import { changeRetention } from './entries.ts';

const ended: ReadonlySet<StatusEntry['state']> = new Set(['stopped', 'completed', 'failed', 'cancelled']);

/** Notes them, or removes those that an earlier pass noted. Returns what was removed. */
export async function sweepStrays(
  log: RunLog,
  entry: RetentionEntry,
  now: Date,
  graceMs: number,
  signal?: AbortSignal,
): Promise<string[]> {
  const status = await log.status();
  if (status === undefined || !ended.has(status.state)) return [];
  const { strays } = entry;
  if (strays?.removing === true) return finish(log, now, signal);
  if (strays?.status !== status.n) {
    const found = await straysOf(log, entry);
    await changeRetention(log, now, async () => ({
      strays: { status: status.n, keys: found, since: now.toISOString(), removing: false },
    }));
    return [];
  }
  if (strays.keys.length === 0 || now.getTime() - Date.parse(strays.since) < graceMs) return [];
  const still = new Set(await straysOf(log, entry));
  const begun = await changeRetention(log, now, async (newest) => {
    if (newest.strays?.status !== (await log.status())?.n || newest.strays === undefined) return undefined;
    return { strays: { ...newest.strays, keys: newest.strays.keys.filter((key) => still.has(key)), removing: true } };
  });
  return begun.strays?.removing === true ? finish(log, now, signal) : [];
}

/** To be called before a run is worked on again: nothing that it writes from now on is taken for a stray. */
export async function endSweep(log: RunLog, now: Date): Promise<void> {
  await finish(log, now);
  await changeRetention(log, now, async ({ strays }) => (strays === undefined ? undefined : { strays: null }));
}

/** Whoever finds a removal that was begun does all of it. */
async function finish(log: RunLog, now: Date, signal?: AbortSignal): Promise<string[]> {
  const removed: string[] = [];
  await changeRetention(log, now, async ({ strays }) => {
    if (strays?.removing !== true) return undefined;
    for (const key of strays.keys) {
      signal?.throwIfAborted();
      faultPoint('janitor.remove', { runId: log.runId });
      await log.store.remove(key);
      removed.push(key);
    }
    return { strays: { ...strays, keys: [], removing: false } };
  });
  return removed;
}

/** Every digest that stands anywhere in a record counts as named. */
async function straysOf({ store, runId }: RunLog, { condemned }: RetentionEntry): Promise<string[]> {
  const blobs = (await store.children(keys.blobs(runId))).map((name) => keys.blob(runId, name));
  const named = new Set(condemned);
  if (blobs.length === 0) return [];
  for (const key of await store.list(keys.all(runId))) {
    if (!isRecord(key, runId)) continue;
    for (const [digest] of new TextDecoder().decode(await store.get(key)).matchAll(/[0-9a-f]{64}/g))
      named.add(keys.blob(runId, digest));
  }
  return blobs.filter((key) => !named.has(key));
}

function isRecord(key: string, runId: string): boolean {
  const [folder] = key.slice(keys.all(runId).length).split('/');
  return key.endsWith('.json') && folder !== 'blobs' && folder !== 'logs' && folder !== 'retention';
}
