/** What the trainers of a run that is divided have saved of a checkpoint, before its manifest is written. */
import { z } from 'zod';
import { damage } from '../../core/records/damage.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Components } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { componentCheckpoint } from '../../core/records/schema.ts';
import type { ComponentCheckpoint } from '../../core/records/schema.ts';
import type { ActivityPorts } from '../ports/index.ts';

const partOfCheckpoint = z.object({ components: z.record(z.string(), componentCheckpoint) });

/**
 * The components of a part, by the blob that names their shards. Throws PauseError `MissingBlob` or `DamagedBlob` when
 * one of them is not in the store.
 */
export async function shardsIn(
  { getJsonBlob, needShards }: Pick<ActivityPorts, 'getJsonBlob' | 'needShards'>,
  store: Store,
  runId: string,
  list: Digest | undefined,
): Promise<Components<ComponentCheckpoint>> {
  if (list === undefined) throw new Error('expected the digest of a list of shards, found none');
  const parsed = partOfCheckpoint.safeParse(await getJsonBlob(store, runId, list));
  if (!parsed.success) throw damage('DamagedBlob', keys.blob(runId, list), 'it is no list of shards');
  const { components } = parsed.data;
  await needShards(store, runId, { components });
  return components;
}
