/**
 * Blobs and manifests that only positions below the floor use. They are found in the records that name them, never by a
 * search that found no user. The records stay. A blob contains its position, so no later position writes the same blob
 * again. Two positions can share a blob through their jobs (validations of unchanged weights): such a blob is held
 * back.
 */
import { RetryableError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import { actorOf, shardsOf } from '../../core/records/components.ts';
import { checkpointIn, keys, weightsIn } from '../../core/records/keys.ts';
import { checkpointManifest, weightsManifest } from '../../core/records/schema.ts';
import type { RetentionEntry, ShardInfo } from '../../core/records/schema.ts';
import { bestCheckpoint } from '../run/best-checkpoint.ts';
import { readRecord } from '../objects/records.ts';
import type { RunLog } from '../run/run-log.ts';
import type { RetentionRule } from './floor.ts';
import { blobsOfCounters, blobsOfResults, PositionBlobs } from './position-blobs.ts';

export type Garbage = Pick<RetentionEntry, 'marked' | 'shared' | 'cleared' | 'terms'>;

/** Everything that the floor frees and that no earlier entry has marked. The best checkpoint is not freed. */
export async function garbageBelow(
  log: RunLog,
  rule: RetentionRule,
  entry: RetentionEntry,
  floor: number,
): Promise<Garbage> {
  const best = floor === 0 ? undefined : await bestCheckpoint(log);
  const isKept = (one: CheckpointKey) => one.iteration >= floor || one.key === best?.key;
  const positions = rule.batches === 'all' ? unchanged(entry) : await ofPositions(log, entry, floor, isKept);
  const manifests = await ofManifests(log, floor, isKept);
  const known = new Set(entry.marked);
  const fresh = [...manifests, ...positions.freed].filter((key) => !known.has(key));
  const { shared, cleared, terms } = positions;
  return { marked: [...entry.marked, ...fresh], shared, cleared, ...(terms && { terms }) };
}

interface CheckpointKey {
  readonly iteration: number;
  readonly key: string;
}
type IsKept = (checkpoint: CheckpointKey) => boolean;

interface Freed extends Pick<RetentionEntry, 'shared' | 'cleared' | 'terms'> {
  readonly freed: readonly string[];
}

const unchanged = ({ shared, cleared, terms }: RetentionEntry): Freed => ({ freed: [], shared, cleared, terms });

/**
 * Blobs of the positions that the floor has passed since the last entry, and blobs that were held back earlier. Reads
 * nothing when the floor has not moved and nothing was held back.
 */
async function ofPositions(log: RunLog, entry: RetentionEntry, floor: number, isKept: IsKept): Promise<Freed> {
  if (floor === 0 || (floor === entry.cleared && entry.shared.length === 0)) return unchanged(entry);
  const head = await log.head();
  if (head === undefined) return unchanged(entry);
  const positions = await PositionBlobs.open(log, head, entry.terms);
  const below = new Set([...entry.shared, ...(await positions.between(entry.cleared, floor))]);
  const newest = await log.evaluations.newest(head);
  const needed = new Set([
    ...(await keptManifests(log, isKept)).flatMap(({ blobs }) => blobs),
    ...(await positions.between(floor, head.position + 1)),
    ...(await blobsOfResults(log, newest?.results ?? [])),
    ...blobsOfCounters(log, head.counters),
  ]);
  return {
    freed: [...below].filter((key) => !needed.has(key)),
    shared: [...below].filter((key) => needed.has(key)),
    cleared: floor,
    terms: await positions.termsAbove(floor),
  };
}

/** Manifests of checkpoints below the floor and of weights that are not in use, and the shards that only these name. */
async function ofManifests(log: RunLog, floor: number, isKept: IsKept): Promise<string[]> {
  const checkpoints = floor === 0 ? [] : await checkpointsWhere(log, (one) => !isKept(one));
  const weights = await oldWeights(log);
  if (checkpoints.length + weights.length === 0) return [];
  // A shard contains its checkpoint's iteration or its weights' name, so weights and checkpoints share none.
  const kept = checkpoints.length === 0 ? await keptWeights(log) : await keptManifests(log, isKept);
  const needed = new Set(kept.flatMap(({ blobs }) => blobs));
  const freed = [...checkpoints, ...weights];
  return [...freed.map(({ key }) => key), ...freed.flatMap(({ blobs }) => blobs).filter((key) => !needed.has(key))];
}

async function keptManifests(log: RunLog, isKept: IsKept): Promise<Manifest[]> {
  return [...(await checkpointsWhere(log, isKept)), ...(await keptWeights(log))];
}

/** Manifests and blobs of the weights in use and of the best checkpoint: they stay although they were marked. */
export async function keptAgain(log: RunLog): Promise<ReadonlySet<string>> {
  const best = await bestCheckpoint(log);
  const checkpoints = best === undefined ? [] : await checkpointsWhere(log, ({ key }) => key === best.key);
  return new Set([...checkpoints, ...(await keptWeights(log))].flatMap(({ key, blobs }) => [key, ...blobs]));
}

async function keptWeights(log: RunLog): Promise<Manifest[]> {
  return weightsWhere(log, await weightsInUse(log), true);
}

/**
 * Weights that a rollout may still read: those of the head, and of the position before it, whose jobs may not have
 * ended.
 */
async function weightsInUse(log: RunLog): Promise<ReadonlySet<Digest>> {
  const head = await log.head();
  if (head === undefined) return new Set();
  const first = actorOf(head.termRecord.components).weightsDigest;
  const before = await log.at(Math.max(0, head.position - 1), head.termRecord).catch(unlessUnanswered);
  return new Set([head.publication.digest, first, before?.publication.digest ?? first]);
}

interface Manifest {
  readonly key: string;
  readonly blobs: readonly string[];
}

const blobsOf = ({ runId }: RunLog, shards: readonly ShardInfo[]) => shards.map(({ blob }) => keys.blob(runId, blob));

/** Checkpoints of every term: those of an abandoned term are freed by their iteration too. */
async function checkpointsWhere(log: RunLog, isWanted: IsKept): Promise<Manifest[]> {
  const all = (await log.store.children(keys.checkpoints(log.runId))).flatMap((name): CheckpointKey[] => {
    const named = checkpointIn(name);
    return named === undefined ? [] : [{ iteration: named.iteration, key: keys.checkpoints(log.runId) + name }];
  });
  return Promise.all(
    all.filter(isWanted).map(async ({ key }) => {
      // An unreadable manifest names no blobs; its shards are orphaned blobs.
      const found = await readRecord(log.store, key, checkpointManifest).catch(unlessUnanswered);
      return { key, blobs: found === undefined ? [] : blobsOf(log, shardsOf(found.record)) };
    }),
  );
}

/** Any trainer can write weights again, so they need no floor. */
async function oldWeights(log: RunLog): Promise<Manifest[]> {
  return weightsWhere(log, await weightsInUse(log), false);
}

async function weightsWhere(log: RunLog, digests: ReadonlySet<Digest>, inUse: boolean): Promise<Manifest[]> {
  const names = (await log.store.children(keys.allWeights(log.runId))).filter((name) => {
    const weights = weightsIn(name);
    return weights !== undefined && digests.has(weights) === inUse;
  });
  return Promise.all(
    names.map(async (name) => {
      const key = keys.allWeights(log.runId) + name;
      const found = await readRecord(log.store, key, weightsManifest);
      return { key, blobs: found === undefined ? [] : blobsOf(log, found.record.shards) };
    }),
  );
}

/** An unavailable store proves nothing about its contents, so this throws. */
function unlessUnanswered(error: unknown): undefined {
  if (error instanceof RetryableError) throw error;
}
