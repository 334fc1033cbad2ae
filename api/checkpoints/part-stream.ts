/** Reads one part of a component's state from the shards of its checkpoint, a shard at a time. */
import type { ByteSink } from '../../core/byte-sink.ts';
import type { StatePart } from '../../core/parameters.ts';
import type { CheckpointManifest, ComponentCheckpoint, ShardInfo } from '../../core/records/schema.ts';
import { streamBlob } from '../../log/objects/blobs.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { damagedCheckpoint, readShard } from '../../models/checkpoint.ts';

/**
 * Gives `take` the bytes of the part, in order, and `skip` those of other parts in the same shards. What came must not
 * be used after an error: TerminalError `DamagedCheckpoint` when an element is in no shard, `DamagedShard`, PauseError
 * `DamagedBlob` or `MissingBlob`.
 */
export async function streamPart(
  log: RunLog,
  manifest: CheckpointManifest,
  component: ComponentCheckpoint,
  { name: part, elements }: StatePart,
  take: ByteSink,
  skip: (bytes: number) => void = () => {},
): Promise<void> {
  const startOf = (shard: ShardInfo) => shard.tensors.find(({ name }) => name === part)?.start;
  const shards = component.shards
    .filter((shard) => startOf(shard) !== undefined)
    .sort((a, b) => (startOf(a) ?? 0) - (startOf(b) ?? 0));
  let next = 0;
  for (const shard of shards) {
    await readShard(shard, component.parts, streamBlob(log.store, log.runId, shard.blob), (piece) => {
      if (piece.part !== part) return (bytes) => skip(bytes.byteLength);
      if (piece.start !== next)
        throw damagedCheckpoint(manifest, `${part}: elements ${next} to ${piece.start} are in no shard`);
      next = piece.end;
      return take;
    });
  }
  if (next !== elements) throw damagedCheckpoint(manifest, `${part}: ${next} of ${elements} elements are there`);
}
