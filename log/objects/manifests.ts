/** Writes the manifest of a checkpoint, when all of its shards are in the store. */
import { damage, isDamage } from '../../core/records/damage.ts';
import type { Store } from '../../core/ports/store.ts';
import { shardsOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { checkpointManifest } from '../../core/records/schema.ts';
import type { CheckpointManifest } from '../../core/records/schema.ts';
import { faultPoint } from '../faults/index.ts';
import { encodeRecord, readRecord } from './records.ts';

/** Resolves with the manifest's key. Replaces a damaged manifest of this name, since its content is known again. */
export async function putManifest(store: Store, manifest: CheckpointManifest): Promise<string> {
  const { runId, iteration, stateDigest } = manifest;
  const key = keys.checkpoint(runId, iteration, stateDigest);
  faultPoint('checkpoint.manifest.before', { iteration });
  if (!(await isCheckpoint(store, key))) await store.put(key, encodeRecord(manifest));
  faultPoint('checkpoint.manifest.after', { iteration });
  return key;
}

/** Does a readable manifest with matching content exist under this name? Its shards are not checked. */
export async function isCheckpoint(store: Store, key: string): Promise<boolean> {
  const found = await readRecord(store, key, checkpointManifest).catch((error: unknown) => {
    if (isDamage(error)) return undefined;
    throw error;
  });
  if (found === undefined) return false;
  await store.settle();
  return keys.checkpoint(found.record.runId, found.record.iteration, found.record.stateDigest) === key;
}

/**
 * Throws PauseError `MissingBlob` when one of these shards is not in the store: the janitor removes those of a manifest
 * that was not written when its run has ended.
 */
export async function needShards(
  store: Store,
  runId: string,
  { components }: Pick<CheckpointManifest, 'components'>,
): Promise<void> {
  for (const { blob, bytes } of shardsOf({ components })) {
    const key = keys.blob(runId, blob);
    const found = await store.head(key);
    if (found !== bytes)
      throw damage('MissingBlob', key, `expected a shard of ${bytes} bytes, found ${found ?? 'nothing'}`);
  }
}
