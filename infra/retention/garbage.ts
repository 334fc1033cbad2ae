/**
 * What only positions below the floor had: named by their records, so nothing is called garbage because it was not found.
 * Records stay; blobs and manifests go. Every blob says what it belongs to, so nobody writes the same one again above the
 * floor; what two positions share by their jobs (a validation of weights that did not change) is held back.
 */
import { RetryableError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import {
  batchDecision,
  checkpointManifest,
  evalRecord,
  resultRecord,
  weightsManifest,
} from '../../core/records/schema.ts';
import type { RetentionEntry, ShardInfo } from '../../core/records/schema.ts';
import { readRecord } from '../store/records.ts';
import type { RunLog } from '../store/run-log.ts';
import type { RetentionRule } from './floor.ts';

export interface Garbage {
  readonly condemned: string[];
  readonly shared: string[];
  readonly cleared: number;
}

/** Everything that the floor frees and that no earlier entry has condemned. */
export async function garbageBelow(
  log: RunLog,
  rule: RetentionRule,
  entry: RetentionEntry,
  floor: number,
): Promise<Garbage> {
  const cleared = rule.batches === 'all' ? entry.cleared : floor;
  const manifests = [...(await oldCheckpoints(log, floor)), ...(await oldWeights(log))];
  const blobs = new Set([
    ...entry.shared,
    ...(await blobsOfPositions(log, entry.cleared + 1, cleared)),
    ...manifests.flatMap((one) => one.blobs),
  ]);
  if (blobs.size === 0 && manifests.length === 0) return { condemned: entry.condemned, shared: [], cleared };
  const needed = await neededBlobs(log, cleared, floor);
  const known = new Set(entry.condemned);
  const fresh = [...manifests.map(({ key }) => key), ...[...blobs].filter((key) => !needed.has(key))].filter(
    (key) => !known.has(key),
  );
  return { condemned: [...entry.condemned, ...fresh], shared: [...blobs].filter((key) => needed.has(key)), cleared };
}

/** Manifests and blobs of the weights in use. */
export async function weightsKept(log: RunLog): Promise<ReadonlySet<string>> {
  return new Set((await weightsWhere(log, await weightsInUse(log), true)).flatMap(({ key, blobs }) => [key, ...blobs]));
}

/** Weights that a rollout may still ask for: of the head, and of the position before it, whose jobs may not have ended. */
async function weightsInUse(log: RunLog): Promise<ReadonlySet<Digest>> {
  const head = await log.head();
  if (head === undefined) return new Set();
  const first = head.termRecord.startWeights;
  const before = await log.at(Math.max(0, head.position - 1)).catch(unlessUnanswered);
  return new Set([head.weightsDigest, first, before?.weightsDigest ?? first]);
}

interface Manifest {
  readonly key: string;
  readonly blobs: readonly string[];
}

const blobsOf = ({ runId }: RunLog, shards: readonly ShardInfo[]) => shards.map(({ blob }) => keys.blob(runId, blob));

/** Of every term: one that no longer counts is as old as its iteration. */
async function checkpointsAt(log: RunLog, wanted: (iteration: number) => boolean): Promise<Manifest[]> {
  const names = (await log.store.children(keys.checkpoints(log.runId))).filter(
    (name) => /^\d+-[0-9a-f]{64}\.json$/.test(name) && wanted(Number.parseInt(name, 10)),
  );
  return Promise.all(
    names.map(async (name) => {
      const key = keys.checkpoints(log.runId) + name;
      // One that cannot be read names nothing; its shards are strays.
      const found = await readRecord(log.store, key, checkpointManifest).catch(unlessUnanswered);
      return { key, blobs: found === undefined ? [] : blobsOf(log, found.record.shards) };
    }),
  );
}

const oldCheckpoints = (log: RunLog, floor: number) => checkpointsAt(log, (iteration) => iteration < floor);

/** They can be written again by any trainer, so they need no floor. */
async function oldWeights(log: RunLog): Promise<Manifest[]> {
  return weightsWhere(log, await weightsInUse(log), false);
}

async function weightsWhere(log: RunLog, digests: ReadonlySet<Digest>, inUse: boolean): Promise<Manifest[]> {
  const names = (await log.store.children(keys.allWeights(log.runId))).filter(
    (name) => digests.has(name.replace('.json', '')) === inUse,
  );
  return Promise.all(
    names.map(async (name) => {
      const key = keys.allWeights(log.runId) + name;
      const found = await readRecord(log.store, key, weightsManifest);
      return { key, blobs: found === undefined ? [] : blobsOf(log, found.record.shards) };
    }),
  );
}

/** A store that does not answer says nothing about what it holds. */
function unlessUnanswered(error: unknown): undefined {
  if (error instanceof RetryableError) throw error;
}

async function neededBlobs(log: RunLog, cleared: number, floor: number): Promise<ReadonlySet<string>> {
  const head = await log.head();
  const kept = await checkpointsAt(log, (iteration) => iteration >= floor);
  const newest = (await log.evaluations()).at(-1);
  return new Set([
    ...kept.flatMap(({ blobs }) => blobs),
    ...(await weightsKept(log)),
    ...(await blobsOfPositions(log, cleared + 1, (head?.position ?? 0) + 1)),
    ...(await blobsOfResults(log, newest?.results ?? [])),
  ]);
}

/** What the batches and validations of these positions name, in every term. */
async function blobsOfPositions(log: RunLog, first: number, last: number): Promise<string[]> {
  const terms = (await log.newestTerm())?.record.term ?? 0;
  const found: string[] = [];
  for (let term = 1; term <= terms; term++) {
    // The base has a validation and no batch; it goes with the first iteration.
    for (let k = first === 1 ? 0 : first; k <= last; k++) found.push(...(await blobsOfPosition(log, term, k)));
  }
  return found;
}

async function blobsOfPosition(log: RunLog, term: number, k: number): Promise<string[]> {
  const { store, runId } = log;
  const batch = k === 0 ? undefined : await readRecord(store, keys.batch(runId, term, k), batchDecision);
  const evaluation = await readRecord(store, keys.evaluation(runId, term, k), evalRecord);
  return [
    ...(batch === undefined || batch.record.decision === 'seal'
      ? []
      : [keys.blob(runId, batch.record.tensors), ...(await blobsOfResults(log, batch.record.results))]),
    ...(await blobsOfResults(log, evaluation?.record.results ?? [])),
  ];
}

async function blobsOfResults({ store, runId }: RunLog, jobs: readonly string[]): Promise<string[]> {
  const records = await Promise.all(jobs.map((job) => readRecord(store, keys.result(runId, job), resultRecord)));
  return records
    .flatMap((found) => blobFields.map((field) => found?.record.output[field]))
    .flatMap((digest) => (typeof digest === 'string' ? [keys.blob(runId, digest)] : []));
}

/** Where the outputs of jobs name blobs. */
const blobFields = ['trajectories', 'scores', 'tensors'] as const;
