/** A state as shards in the store, and back. What a shard is stands in models/checkpoint.ts. */
import type { RunId } from '../../core/ids.ts';
import type { ParameterInfo, Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { CheckpointManifest, ShardInfo } from '../../core/records/schema.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import { putLargeBlob, streamBlob } from '../../infra/store/blobs.ts';
import type { StateDigests, StateParts } from '../../infra/store/digest.ts';
import { stateDigests } from '../../infra/store/digest.ts';
import { encodeRecord } from '../../infra/store/records.ts';
import { checkpointParts, damagedCheckpoint, encodeShards, readShard } from '../../models/checkpoint.ts';
import type { CheckpointPart } from '../../models/checkpoint.ts';
import { filling } from '../../models/safetensors.ts';
import type { TensorSink } from '../../models/safetensors.ts';

/** A copy of a state that nobody writes to. */
export interface Snapshot extends StateParts {
  readonly parameters: readonly ParameterInfo[];
  readonly digests: StateDigests;
}

export interface ShardPlace {
  readonly store: Store;
  readonly runId: RunId;
  readonly iteration: number;
}

export interface CheckpointPlace extends ShardPlace {
  readonly term: number;
}

/** Writes shards, then the manifest that makes them true. Returns the manifest's key. */
export async function saveCheckpoint(place: CheckpointPlace, snapshot: Snapshot): Promise<string> {
  const shards: ShardInfo[] = [];
  for (const part of checkpointParts) shards.push(...(await savePart(place, part, snapshot[part])));
  const manifest: CheckpointManifest = {
    format: recordFormat,
    runId: place.runId,
    term: place.term,
    iteration: place.iteration,
    ...snapshot.digests,
    shards,
    parameters: snapshot.parameters.map(({ name, shape }) => ({ name, shape: [...shape] })),
    state: { steps: snapshot.steps },
  };
  const key = keys.checkpoint(place.runId, place.iteration, snapshot.digests.stateDigest);
  faultPoint('checkpoint.manifest.before', { iteration: place.iteration });
  await place.store.create(key, encodeRecord(manifest));
  faultPoint('checkpoint.manifest.after', { iteration: place.iteration });
  return key;
}

/** Writes one part of a state, which must not change meanwhile. */
export async function savePart(place: ShardPlace, part: CheckpointPart, flat: Float32Array): Promise<ShardInfo[]> {
  const shards: ShardInfo[] = [];
  for (const { pieces, bytes, tensors } of encodeShards(part, flat)) {
    faultPoint('checkpoint.shard', { iteration: place.iteration });
    shards.push({ blob: await putLargeBlob(place.store, place.runId, pieces), bytes, tensors });
  }
  return shards;
}

/** Streams every shard by digest into the flat buffers and checks the whole. Throws TerminalError `DamagedCheckpoint`. */
export async function loadCheckpoint(store: Store, runId: RunId, manifest: CheckpointManifest, into: StateParts & { steps: number }, onBlock: () => void): Promise<StateDigests> {
  for (const shard of manifest.shards) {
    await readShard(shard, streamBlob(store, runId, shard.blob), ({ part, start, end }) => showing(onBlock, filling(into[part].subarray(start, end))));
  }
  into.steps = Number(manifest.state['steps']);
  const digests = stateDigests(into, onBlock);
  if (digests.stateDigest !== manifest.stateDigest) throw damagedCheckpoint(manifest, `its state hashes to ${digests.stateDigest}`);
  return digests;
}

/** A sink whose every piece is a sign of progress. */
function showing(onBlock: () => void, sink: TensorSink): TensorSink {
  return (piece) => {
    sink(piece);
    onBlock();
  };
}
