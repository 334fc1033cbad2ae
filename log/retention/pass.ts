/**
 * One pass over a run. First it removes the objects that an earlier pass marked, then it raises the floor and marks the
 * objects that this frees. Between marking and removing is a grace period, in which a reader of objects below the new
 * floor can finish.
 */
import { errorToJson } from '../../core/errors.ts';
import { checkpointIn, keys } from '../../core/records/keys.ts';
import { isOwnKey } from '../../core/records/own-keys.ts';
import { runRecord, tombstone } from '../../core/records/schema.ts';
import type { RetentionEntry } from '../../core/records/schema.ts';
import { faultPoint } from '../faults/index.ts';
import { needRecord } from '../objects/records.ts';
import type { RunLog } from '../run/run-log.ts';
import { changeRetention, livePins, readRetention } from '../run/retention-log.ts';
import { floorOf, ruleOf } from './floor.ts';
import { garbageBelow, keptAgain } from './garbage.ts';
import { sweepOrphans } from './orphans.ts';

const nothing: RunPass['removed'] = { objects: 0, bytes: 0, checkpoints: [] };

export interface PassOptions {
  readonly now: Date;
  /** How long an object stays marked before it is removed. */
  readonly graceMs: number;
  readonly dryRun?: boolean;
  /** True after another process was asked to sweep; this one then removes nothing more. */
  readonly signal?: AbortSignal | undefined;
}

/** What a pass did to a run, or would do in a dry run. */
export interface RunPass {
  readonly runId: string;
  readonly floor: number;
  readonly removed: { readonly objects: number; readonly bytes: number; readonly checkpoints: readonly number[] };
  /** Objects that a later pass will remove. */
  readonly marked: number;
  /** Why nothing was done. */
  readonly problem?: string;
}

/** A run whose records cannot be read is skipped, with the reason. */
export async function passOver(log: RunLog, options: PassOptions): Promise<RunPass> {
  try {
    return (await log.store.head(keys.tombstone(log.runId))) === undefined
      ? await pass(log, options)
      : await finishRemoval(log, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    return {
      runId: log.runId,
      floor: 0,
      removed: { objects: 0, bytes: 0, checkpoints: [] },
      marked: 0,
      problem: errorToJson(error).message,
    };
  }
}

async function pass(log: RunLog, { now, graceMs, dryRun = false, signal }: PassOptions): Promise<RunPass> {
  const before = await readRetention(log);
  if (await isSettled(log, before)) return { runId: log.runId, floor: before.floor, removed: nothing, marked: 0 };
  const ripe = now.getTime() - Date.parse(before.markedAt) >= graceMs ? before.marked : [];
  const removable = new Set(ripe);
  const due = ripe.length === 0 ? [] : await stillMarked(log, ripe);
  const removed = await remove(log, due, dryRun, signal);
  if (dryRun) {
    const { floor, marked } = await judge(log, before, now);
    return { runId: log.runId, floor, removed, marked: marked.length - ripe.length };
  }
  if (ripe.length > 0)
    await changeRetention(log, now, async ({ marked }) => ({
      marked: marked.filter((key) => !removable.has(key)),
    }));
  const orphans = await sweepOrphans(log, await readRetention(log), now, graceMs, signal);
  const entry = await changeRetention(log, now, async (newest) => {
    const judged = await judge(log, newest, now);
    const grown = judged.marked.length > newest.marked.length;
    const same =
      !grown &&
      judged.floor === newest.floor &&
      judged.cleared === newest.cleared &&
      judged.shared.join() === newest.shared.join() &&
      judged.verified.join() === newest.verified.join();
    const pins = livePins(newest, now);
    if (same && pins.length === newest.pins.length) return ifSettled(log, newest);
    return { ...judged, pins, ...(grown ? { markedAt: now.toISOString() } : {}) };
  });
  faultPoint('janitor.marked', { runId: log.runId });
  return {
    runId: log.runId,
    floor: entry.floor,
    removed: { ...removed, objects: removed.objects + orphans.length },
    marked: entry.marked.length,
  };
}

/** The run has ended and an earlier pass found nothing more to do. It is read again only after a new status entry. */
async function isSettled(log: RunLog, entry: RetentionEntry): Promise<boolean> {
  return entry.settled !== undefined && entry.pins.length === 0 && (await log.status.newest())?.n === entry.settled;
}

/**
 * Records that nothing is left to do for an ended run. Pins of forks that are being created may hold the floor back.
 */
async function ifSettled(log: RunLog, entry: RetentionEntry): Promise<Pick<RetentionEntry, 'settled'> | undefined> {
  const status = await log.status.newest();
  const { orphans } = entry;
  const done = entry.marked.length + entry.pins.length + (orphans?.keys.length ?? 0) === 0;
  if (!done || status === undefined || orphans?.status !== status.n || entry.settled === status.n) return undefined;
  return (await log.store.children(keys.pins(log.runId))).length === 0 ? { settled: status.n } : undefined;
}

async function judge(log: RunLog, entry: Awaited<ReturnType<typeof readRetention>>, now: Date) {
  const rule = await ruleOf(log);
  const { floor, verified } = await floorOf(log, rule, entry, now);
  return { floor, verified, ...(await garbageBelow(log, rule, entry, floor)) };
}

/**
 * Weights may be in use again, because a trainer may have gone back, and a checkpoint may be the best again, by another
 * metric. No other object below the floor can be needed.
 */
async function stillMarked(log: RunLog, marked: readonly string[]): Promise<string[]> {
  const kept = await keptAgain(log);
  return marked.filter((key) => !kept.has(key));
}

/**
 * Removes manifests before blobs, so that no reader finds a manifest without its shards, not even after a power cut.
 */
async function remove(
  log: RunLog,
  due: readonly string[],
  dryRun: boolean,
  signal: AbortSignal | undefined,
): Promise<RunPass['removed']> {
  const isBlob = (key: string) => key.startsWith(keys.blobs(log.runId));
  const checkpoints = due.map((key) => checkpointIn(key)?.iteration).filter((iteration) => iteration !== undefined);
  let [objects, bytes] = [0, 0];
  for (const part of [due.filter((key) => !isBlob(key)), due.filter(isBlob)]) {
    if (!dryRun) await log.store.settle();
    for (const key of part) {
      const size = await log.store.head(key);
      if (size === undefined) continue;
      if (!dryRun) {
        signal?.throwIfAborted();
        faultPoint('janitor.remove', { runId: log.runId });
        await log.store.remove(key);
      }
      objects += 1;
      bytes += size;
    }
  }
  return { objects, bytes, checkpoints: checkpoints.sort((a, b) => a - b) };
}

/** Completes the interrupted deletion of a whole run. */
async function finishRemoval({ store, runId }: RunLog, { dryRun = false, signal }: PassOptions): Promise<RunPass> {
  await needRecord(store, keys.run(runId), runRecord); // a folder of this name may be the user's
  await needRecord(store, keys.tombstone(runId), tombstone);
  const left = (await store.list(keys.all(runId))).filter(
    (key) => isOwnKey(key) && key !== keys.run(runId) && key !== keys.tombstone(runId),
  );
  const sizes = await Promise.all(left.map((key) => store.head(key)));
  if (!dryRun) await store.settle();
  for (const key of dryRun ? [] : left) {
    signal?.throwIfAborted();
    await store.remove(key);
  }
  return {
    runId,
    floor: 0,
    removed: {
      objects: left.length,
      bytes: sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0),
      checkpoints: [],
    },
    marked: 0,
  };
}
