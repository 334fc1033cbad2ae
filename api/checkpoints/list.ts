/** The checkpoints of a run. */
import { TerminalError } from '../../core/errors.ts';
import { actorOf, shardsOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import type { CheckpointManifest } from '../../core/records/schema.ts';
import { readRetention } from '../../log/run/retention-log.ts';
import { bestCheckpoint } from '../../log/run/best-checkpoint.ts';
import type { BestCheckpoint } from '../../log/run/best-checkpoint.ts';
import type { Stored } from '../../log/objects/records.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { noSuchIteration } from '../no-such-iteration.ts';

export interface CheckpointRow {
  readonly iteration: number;
  readonly term: number;
  /** weightsDigest: names the policy. */
  readonly digest: string;
  readonly stateDigest: string;
  readonly bytes: number;
  readonly shards: number;
  /** Every shard is there with its size; `petrel ckpt verify` reads them. */
  readonly complete: boolean;
  readonly key: string;
  /** The best one by `trainer.best_metric`: the metric and its value. */
  readonly best?: { readonly metric: string; readonly value: number };
}

/** Retention keeps what follows this iteration; 0 when nothing was ever removed. */
export async function retentionFloor(log: RunLog): Promise<number> {
  return (await readRetention(log)).floor;
}

/** Ascending by iteration. */
export async function listCheckpoints(log: RunLog): Promise<CheckpointRow[]> {
  const manifests = (await log.checkpoints.all()).reverse();
  const best = await bestCheckpoint(log);
  const rows = await Promise.all(manifests.map((manifest) => checkpointRow(manifest, log)));
  return rows.map((row) =>
    row.key === best?.key ? { ...row, best: { metric: best.metric, value: best.value } } : row,
  );
}

async function checkpointRow(
  { key, record }: Stored<CheckpointManifest>,
  { store, runId }: RunLog,
): Promise<CheckpointRow> {
  const shards = shardsOf(record);
  const sizes = await Promise.all(shards.map(({ blob }) => store.head(keys.blob(runId, blob))));
  return {
    iteration: record.iteration,
    term: record.term,
    digest: actorOf(record.components).weightsDigest,
    stateDigest: record.stateDigest,
    bytes: shards.reduce((sum, { bytes }) => sum + bytes, 0),
    shards: shards.length,
    complete: shards.every(({ bytes }, i) => sizes[i] === bytes),
    key,
  };
}

/**
 * The newest one, that of an iteration, or the best one. Throws TerminalError `NotFound` that names those there are.
 */
export async function chooseCheckpoint(
  log: RunLog,
  which: number | 'best' | undefined,
): Promise<Stored<CheckpointManifest>> {
  const all = await log.checkpoints.all();
  const iteration = which === 'best' ? (await needBest(log)).iteration : which;
  const chosen = iteration === undefined ? all[0] : all.find(({ record }) => record.iteration === iteration);
  if (chosen === undefined)
    throw noSuchIteration(
      iteration === undefined ? 'checkpoint' : 'checkpoint of iteration',
      iteration,
      all.map(({ record }) => record.iteration).reverse(),
    );
  return chosen;
}

async function needBest(log: RunLog): Promise<BestCheckpoint> {
  const best = await bestCheckpoint(log);
  if (best === undefined)
    throw new TerminalError('NotFound', `${log.runId} has no best checkpoint`, {
      hint: 'it has one when the recipe names trainer.best_metric, and a policy with a checkpoint was validated',
    });
  return best;
}
