/**
 * Orphaned blobs: no record names them, because their writer died before it wrote one. While a run is active, any blob
 * may be named at any moment. So orphaned blobs are marked when the run has ended, and removed by a later pass if the
 * run has not been resumed. A process that resumes the run completes a started removal first.
 */
import { digestPattern } from '../../core/ids.ts';
import { endedStates } from '../../core/run-states.ts';
import { keys } from '../../core/records/keys.ts';
import type { RetentionEntry } from '../../core/records/schema.ts';
import { faultPoint } from '../faults/index.ts';
import type { RunLog } from '../run/run-log.ts';
import { changeRetention } from '../run/retention-log.ts';

/** Marks orphaned blobs, or removes those that an earlier pass marked. Returns the keys that it removed. */
export async function sweepOrphans(
  log: RunLog,
  entry: RetentionEntry,
  now: Date,
  graceMs: number,
  signal?: AbortSignal,
): Promise<string[]> {
  const status = await log.status.newest();
  if (status === undefined || !endedStates.has(status.state)) return [];
  const { orphans } = entry;
  if (orphans?.removing === true) return finish(log, now, signal);
  if (orphans?.status !== status.n) {
    const found = await orphanedBlobs(log, entry);
    await changeRetention(log, now, async () => ({
      orphans: { status: status.n, keys: found, since: now.toISOString(), removing: false },
    }));
    return [];
  }
  if (orphans.keys.length === 0 || now.getTime() - Date.parse(orphans.since) < graceMs) return [];
  const still = new Set(await orphanedBlobs(log, entry));
  const started = await changeRetention(log, now, async (newest) => {
    if (newest.orphans?.status !== (await log.status.newest())?.n || newest.orphans === undefined) return undefined;
    return {
      orphans: { ...newest.orphans, keys: newest.orphans.keys.filter((key) => still.has(key)), removing: true },
    };
  });
  return started.orphans?.removing === true ? finish(log, now, signal) : [];
}

/** Call this before a run becomes active again, so that no new blob counts as orphaned. */
export async function endSweep(log: RunLog, now: Date): Promise<void> {
  await finish(log, now);
  await changeRetention(log, now, async ({ orphans }) => (orphans === undefined ? undefined : { orphans: null }));
}

/** Completes a removal that this process or a dead one started. */
async function finish(log: RunLog, now: Date, signal?: AbortSignal): Promise<string[]> {
  const removed: string[] = [];
  await changeRetention(log, now, async ({ orphans }) => {
    if (orphans?.removing !== true) return undefined;
    await log.store.settle();
    for (const key of orphans.keys) {
      signal?.throwIfAborted();
      faultPoint('janitor.remove', { runId: log.runId });
      await log.store.remove(key);
      removed.push(key);
    }
    return { orphans: { ...orphans, keys: [], removing: false } };
  });
  return removed;
}

/** Blobs whose digest appears in no record of the run. */
async function orphanedBlobs({ store, runId }: RunLog, { marked }: RetentionEntry): Promise<string[]> {
  const names = (await store.children(keys.blobs(runId))).filter((name) => digestPattern.test(name));
  const blobs = names.map((name) => keys.blob(runId, name));
  const named = new Set(marked);
  if (blobs.length === 0) return [];
  for (const key of await store.list(keys.all(runId))) {
    if (!isRecord(key, runId)) continue;
    for (const [digest] of new TextDecoder().decode(await store.get(key)).matchAll(/[0-9a-f]{64}/g))
      named.add(keys.blob(runId, digest));
  }
  return blobs.filter((key) => !named.has(key));
}

/** Folders whose objects name no blob that must be kept. */
const withoutDigests: ReadonlySet<string> = new Set(['blobs', 'logs', 'retention', 'columns']);

function isRecord(key: string, runId: string): boolean {
  const [folder] = key.slice(keys.all(runId).length).split('/');
  return key.endsWith('.json') && !withoutDigests.has(folder ?? '');
}
