/** The tensors of a committed batch, a part at a time. */
import type { BatchRecord } from '../core/records/schema.ts';
import { getBlob } from '../log/objects/blobs.ts';
import type { RunLog } from '../log/run/run-log.ts';
import { checkShard, decodeIndex } from '../models/batch-shards.ts';
import { decodeBatch } from '../models/batch-tensors.ts';
import type { BatchTensors } from '../models/batch-tensors.ts';

/**
 * The whole batch, or its shards, of which only one is in memory. Where epochs are equal, a shard comes again. Throws
 * PauseError for what is missing or damaged. `onBytes`: called with the size of every object that is read.
 */
export async function* partsOfBatch(
  { store, runId }: Pick<RunLog, 'store' | 'runId'>,
  { tensors, shards }: BatchRecord,
  where: string,
  onBytes: (bytes: number) => void = () => {},
): AsyncGenerator<BatchTensors> {
  const read = async (digest: string): Promise<Uint8Array> => {
    const bytes = await getBlob(store, runId, digest);
    onBytes(bytes.byteLength);
    return bytes;
  };
  if (shards === undefined) {
    yield decodeBatch(await read(tensors), where);
    return;
  }
  const index = decodeIndex(await read(tensors), where, shards.length);
  for (const [k, digest] of shards.entries()) {
    const shard = decodeBatch(await read(digest), where);
    checkShard(shard, index, k, where);
    yield shard;
  }
}
