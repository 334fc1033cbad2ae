/**
 * A state as shards in the store, and back. A shard is a safetensors file of at most `shardBytes` with pieces of the
 * flat fp32 buffers; the manifest says which elements of which tensor lie where, so any number of shards loads.
 */
import { TerminalError } from '../../core/errors.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { ParameterInfo, Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { CheckpointManifest, ShardInfo } from '../../core/records/schema.ts';
import { getBlob, putBlob } from '../../infra/store/blobs.ts';
import type { StateDigests, StateParts } from '../../infra/store/digest.ts';
import { stateDigests } from '../../infra/store/digest.ts';
import { encodeRecord } from '../../infra/store/records.ts';
import { decodeSafetensors, encodeSafetensors } from '../../models/safetensors.ts';
import { f32, f32Of } from '../../models/trajectories.ts';

/** Size of a shard: small enough to hash and write beside training, large enough for a fast disk. */
const shardBytes = 256 * 1024 * 1024;
const parts = ['weights', 'm', 'v'] as const;

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
  for (const part of parts) shards.push(...(await savePart(place, part, snapshot[part])));
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
  await place.store.create(key, encodeRecord(manifest));
  return key;
}

async function savePart(place: CheckpointPlace, part: string, flat: Float32Array): Promise<ShardInfo[]> {
  const shards: ShardInfo[] = [];
  const perShard = shardBytes / 4;
  for (let start = 0; start < flat.length; start += perShard) {
    const end = Math.min(start + perShard, flat.length);
    const bytes = encodeSafetensors({ [part]: f32(flat.subarray(start, end)) });
    shards.push({ blob: await putBlob(place.store, place.runId, bytes), bytes: bytes.byteLength, tensors: [{ name: part, start, end }] });
  }
  return shards;
}

/** Reads every shard by digest into the flat buffers and checks the whole. Throws TerminalError `DamagedCheckpoint`. */
export async function loadCheckpoint(store: Store, runId: RunId, manifest: CheckpointManifest, into: StateParts & { steps: number }, onBlock: () => void): Promise<StateDigests> {
  for (const shard of manifest.shards) {
    const file = decodeSafetensors(await getBlob(store, runId, shard.blob), shard.blob);
    for (const { name, start } of shard.tensors) {
      const target = parts.find((part) => part === name);
      if (target === undefined) throw damaged(manifest, `unknown part ${name}`);
      into[target].set(f32Of(file, name, shard.blob), start);
    }
    onBlock();
  }
  into.steps = Number(manifest.state['steps']);
  const digests = stateDigests(into, onBlock);
  if (digests.stateDigest !== manifest.stateDigest) throw damaged(manifest, `its state hashes to ${digests.stateDigest}`);
  return digests;
}

function damaged(manifest: CheckpointManifest, why: string): TerminalError {
  const where = keys.checkpoint(manifest.runId, manifest.iteration, manifest.stateDigest as Digest);
  return new TerminalError('DamagedCheckpoint', `${where}: ${why}`, { where });
}
