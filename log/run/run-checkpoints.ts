/** Checkpoints that belong to a run's committed log. */
import { isDamage } from '../../core/records/damage.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { checkpointIn, keys } from '../../core/records/keys.ts';
import { checkpointManifest } from '../../core/records/schema.ts';
import type { CheckpointManifest, TermRecord } from '../../core/records/schema.ts';
import { readRecord } from '../objects/records.ts';
import type { Stored } from '../objects/records.ts';
import type { LogEnd } from './lineage.ts';

/** A checkpoint that belongs to the log, by its name. */
export interface CheckpointName {
  readonly iteration: number;
  readonly stateDigest: string;
  readonly key: string;
}

/** The part of RunLog that is needed here. */
interface CheckpointSource {
  readonly store: Store;
  readonly runId: RunId;
  head(): Promise<LogEnd | undefined>;
  first(): Promise<number>;
  at(position: number, newest: TermRecord): Promise<{ readonly stateDigest: Digest }>;
}

/**
 * Names of the checkpoints of the committed log, newest first. Manifests are not read: the log gives the state of each
 * iteration, so checkpoints of abandoned iterations are recognised and left out.
 */
export async function* checkpointNamesOf(log: CheckpointSource, upTo: number): AsyncGenerator<CheckpointName> {
  const listed = (await log.store.children(keys.checkpoints(log.runId)))
    .map(checkpointIn)
    .filter((named) => named !== undefined)
    .filter(({ iteration }) => iteration <= upTo)
    .sort((a, b) => b.iteration - a.iteration);
  if (listed.length === 0) return;
  const head = await log.head();
  if (head === undefined) return;
  const first = await log.first();
  for (const { iteration, stateDigest } of listed) {
    if (iteration > head.position || iteration < first) continue;
    const at = await unlessDamaged(log.at(iteration, head.termRecord));
    if (at?.stateDigest === stateDigest)
      yield { iteration, stateDigest, key: keys.checkpoint(log.runId, iteration, stateDigest) };
  }
}

/** The manifest of this state; undefined when it is missing, unreadable, or does not match its name. */
export async function checkpointOf(
  { store, runId }: Pick<CheckpointSource, 'store' | 'runId'>,
  iteration: number,
  stateDigest: Digest,
): Promise<Stored<CheckpointManifest> | undefined> {
  const key = keys.checkpoint(runId, iteration, stateDigest);
  const found = await unlessDamaged(readRecord(store, key, checkpointManifest));
  const same =
    found?.record.runId === runId && found.record.iteration === iteration && found.record.stateDigest === stateDigest;
  return same ? found : undefined;
}

/** The value, or undefined for damage: for objects that the log can do without. */
async function unlessDamaged<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}
