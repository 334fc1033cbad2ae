/** The checkpoints of a run. */
import { actorOf, shardsOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import type { CheckpointManifest } from '../../core/records/schema.ts';
import { readRetention } from '../../infra/store/retention-log.ts';
import type { Stored } from '../../infra/store/records.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import { noSuchIteration } from '../runs/samples.ts';

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
}

/** Retention keeps what follows this iteration; 0 when nothing was ever removed. */
export async function retentionFloor(log: RunLog): Promise<number> {
  return (await readRetention(log)).floor;
}

/** Ascending by iteration. */
export async function checkpointRows(log: RunLog): Promise<CheckpointRow[]> {
  const manifests = (await log.checkpoints()).reverse();
  return Promise.all(manifests.map((manifest) => checkpointRow(manifest, log)));
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

/** The newest one, or that of an iteration. Throws TerminalError `NotFound` that names those there are. */
export async function chooseCheckpoint(
  log: RunLog,
  iteration: number | undefined,
): Promise<Stored<CheckpointManifest>> {
  const all = await log.checkpoints();
  const chosen = iteration === undefined ? all[0] : all.find(({ record }) => record.iteration === iteration);
  if (chosen === undefined)
    throw noSuchIteration(
      iteration === undefined ? 'checkpoint' : 'checkpoint of iteration',
      iteration,
      all.map(({ record }) => record.iteration).reverse(),
    );
  return chosen;
}
