/**
 * The shards of a checkpoint: pieces of the flat fp32 parts of a state, as safetensors. The manifest says which elements
 * lie where, so any number of shards loads.
 */
import { TerminalError } from '../core/errors.ts';
import { keys } from '../core/records/keys.ts';
import type { CheckpointManifest, ShardInfo } from '../core/records/schema.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import { f32, f32Of } from './trajectories.ts';

/** Master weights, first and second moments. */
export const checkpointParts = ['weights', 'm', 'v'] as const;
export type CheckpointPart = (typeof checkpointParts)[number];

/** Size of a shard: small enough to hash and write beside training, large enough for a fast disk; whole digest blocks. */
const shardBytes = 256 * 1024 * 1024;

export interface EncodedShard {
  readonly bytes: Uint8Array;
  readonly tensors: ShardInfo['tensors'];
}

/** One shard at a time, so that a large state is never held twice. */
export function* encodeShards(part: CheckpointPart, flat: Float32Array): Generator<EncodedShard> {
  const perShard = shardBytes / 4;
  for (let start = 0; start < flat.length; start += perShard) {
    const end = Math.min(start + perShard, flat.length);
    yield { bytes: encodeSafetensors({ [part]: f32(flat.subarray(start, end)) }), tensors: [{ name: part, start, end }] };
  }
}

export interface ShardPiece {
  readonly part: CheckpointPart;
  /** First element of the piece in the flat part. */
  readonly start: number;
  readonly data: Float32Array;
}

/** The pieces of one shard. Throws TerminalError `DamagedCheckpoint` when it does not hold what the manifest says. */
export function decodeShard(manifest: CheckpointManifest, shard: ShardInfo, bytes: Uint8Array): ShardPiece[] {
  const file = decodeSafetensors(bytes, shard.blob);
  return shard.tensors.map(({ name, start, end }) => {
    const part = checkpointParts.find((one) => one === name);
    if (part === undefined) throw damagedCheckpoint(manifest, `unknown part ${name}`);
    const data = f32Of(file, name, shard.blob);
    if (data.length !== end - start) throw damagedCheckpoint(manifest, `${name} ${start}–${end} holds ${data.length} values`);
    return { part, start, data };
  });
}

/** Elements of each flat part. */
export function checkpointElements(manifest: CheckpointManifest): number {
  return manifest.parameters.reduce((sum, { shape }) => sum + shape.reduce((size, length) => size * length, 1), 0);
}

export function damagedCheckpoint(manifest: CheckpointManifest, why: string): TerminalError {
  const where = keys.checkpoint(manifest.runId, manifest.iteration, manifest.stateDigest);
  return new TerminalError('DamagedCheckpoint', `${where}: ${why}`, { where });
}
