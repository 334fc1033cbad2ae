/** A state as shards in the store, and back. What a shard is stands in models/checkpoint.ts. */
import type { RunId } from '../../core/ids.ts';
import type { ParameterInfo, Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { CheckpointManifest, ShardInfo } from '../../core/records/schema.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import { getBlob, putBlob } from '../../infra/store/blobs.ts';
import type { StateDigests, StateParts } from '../../infra/store/digest.ts';
import { stateDigests } from '../../infra/store/digest.ts';
import { encodeRecord } from '../../infra/store/records.ts';
import { checkpointParts, damagedCheckpoint, decodeShard, encodeShards } from '../../models/checkpoint.ts';
import type { CheckpointPart } from '../../models/checkpoint.ts';

/** A copy of a state that nobody writes to. */
export interface Snapshot extends StateParts {
  readonly parameters: readonly ParameterInfo[];
  readonly digests: StateDigests;
}

export interface CheckpointPlace {
  readonly store: Store;
  readonly runId: RunId;
  readonly term: number;
  readonly iteration: number;
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

async function savePart(place: CheckpointPlace, part: CheckpointPart, flat: Float32Array): Promise<ShardInfo[]> {
  const shards: ShardInfo[] = [];
  for (const { bytes, tensors } of encodeShards(part, flat)) {
    faultPoint('checkpoint.shard', { iteration: place.iteration });
    shards.push({ blob: await putBlob(place.store, place.runId, bytes), bytes: bytes.byteLength, tensors });
  }
  return shards;
}

/** Reads every shard by digest into the flat buffers and checks the whole. Throws TerminalError `DamagedCheckpoint`. */
export async function loadCheckpoint(store: Store, runId: RunId, manifest: CheckpointManifest, into: StateParts & { steps: number }, onBlock: () => void): Promise<StateDigests> {
  for (const shard of manifest.shards) {
    for (const { part, start, data } of decodeShard(manifest, shard, await getBlob(store, runId, shard.blob))) into[part].set(data, start);
    onBlock();
  }
  into.steps = Number(manifest.state['steps']);
  const digests = stateDigests(into, onBlock);
  if (digests.stateDigest !== manifest.stateDigest) throw damagedCheckpoint(manifest, `its state hashes to ${digests.stateDigest}`);
  return digests;
}
