/**
 * One pass over a run. First it removes what an earlier pass condemned, then it raises the floor and condemns what that
 * frees. Between the two lies the grace: whoever was reading something below the new floor can end.
 */
import { errorToJson } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { faultPoint } from '../faults/index.ts';
import type { RunLog } from '../store/run-log.ts';
import { changeRetention, livePins, readRetention } from './entries.ts';
import { floorOf, ruleOf } from './floor.ts';
import { garbageBelow, weightsKept } from './garbage.ts';
import { sweepStrays } from './strays.ts';

export interface PassOptions {
  readonly now: Date;
  /** How long something stays condemned before it goes. */
  readonly graceMs: number;
  readonly dryRun?: boolean;
  /** Another was asked to do it: nothing more is removed. */
  readonly signal?: AbortSignal | undefined;
}

/** What a pass did to a run; of a dry run, what it would do. */
export interface RunPass {
  readonly runId: string;
  readonly floor: number;
  readonly removed: { readonly objects: number; readonly bytes: number; readonly checkpoints: readonly number[] };
  /** Objects that a later pass removes. */
  readonly condemned: number;
  /** Why nothing was done. */
  readonly problem?: string;
}

/** A run whose records cannot be read is left alone, and says why. */
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
      condemned: 0,
      problem: errorToJson(error).message,
    };
  }
}

async function pass(log: RunLog, { now, graceMs, dryRun = false, signal }: PassOptions): Promise<RunPass> {
  const before = await readRetention(log);
  const ripe = now.getTime() - Date.parse(before.condemnedAt) >= graceMs ? before.condemned : [];
  const due = ripe.length === 0 ? [] : await stillCondemned(log, ripe);
  const removed = await remove(log, due, dryRun, signal);
  if (dryRun) {
    const { floor, condemned } = await judge(log, before, now);
    return { runId: log.runId, floor, removed, condemned: condemned.length - ripe.length };
  }
  if (ripe.length > 0)
    await changeRetention(log, now, async ({ condemned }) => ({
      condemned: condemned.filter((key) => !ripe.includes(key)),
    }));
  const strays = await sweepStrays(log, await readRetention(log), now, graceMs, signal);
  const entry = await changeRetention(log, now, async (newest) => {
    const judged = await judge(log, newest, now);
    const grown = judged.condemned.length > newest.condemned.length;
    const same =
      !grown &&
      judged.floor === newest.floor &&
      judged.cleared === newest.cleared &&
      judged.shared.join() === newest.shared.join() &&
      judged.verified.join() === newest.verified.join();
    const pins = livePins(newest, now);
    if (same && pins.length === newest.pins.length) return undefined;
    return { ...judged, pins, ...(grown ? { condemnedAt: now.toISOString() } : {}) };
  });
  faultPoint('janitor.marked', { runId: log.runId });
  return {
    runId: log.runId,
    floor: entry.floor,
    removed: { ...removed, objects: removed.objects + strays.length },
    condemned: entry.condemned.length,
  };
}

async function judge(log: RunLog, entry: Awaited<ReturnType<typeof readRetention>>, now: Date) {
  const rule = await ruleOf(log);
  const { floor, verified } = await floorOf(log, rule, entry, now);
  return { floor, verified, ...(await garbageBelow(log, rule, entry, floor)) };
}

/** Weights may have come into use again: any trainer may have gone back. What lies below the floor has not. */
async function stillCondemned(log: RunLog, condemned: readonly string[]): Promise<string[]> {
  const kept = await weightsKept(log);
  return condemned.filter((key) => !kept.has(key));
}

/** Manifests before blobs: nobody meets one whose shards are gone. */
async function remove(
  log: RunLog,
  due: readonly string[],
  dryRun: boolean,
  signal: AbortSignal | undefined,
): Promise<RunPass['removed']> {
  const isBlob = (key: string) => key.startsWith(keys.blobs(log.runId));
  const checkpoints = due
    .filter((key) => key.startsWith(keys.checkpoints(log.runId)))
    .map((key) => Number.parseInt(key.slice(keys.checkpoints(log.runId).length), 10));
  let [objects, bytes] = [0, 0];
  for (const key of [...due.filter((one) => !isBlob(one)), ...due.filter(isBlob)]) {
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
  return { objects, bytes, checkpoints: checkpoints.sort((a, b) => a - b) };
}

/** A deletion of a whole run that was cut off. */
async function finishRemoval({ store, runId }: RunLog, { dryRun = false, signal }: PassOptions): Promise<RunPass> {
  const left = (await store.list(keys.all(runId))).filter(
    (key) => key !== keys.run(runId) && key !== keys.tombstone(runId),
  );
  const sizes = await Promise.all(left.map((key) => store.head(key)));
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
    condemned: 0,
  };
}
