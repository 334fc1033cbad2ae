/**
 * The shards of a checkpoint: pieces of the flat fp32 parts of a state, as safetensors. The manifest says which
 * elements are in which shard, so any number of shards can be loaded.
 */
import type { ByteSink } from '../core/byte-sink.ts';
import { TerminalError } from '../core/errors.ts';
import type { StatePiece } from '../core/ports/policy.ts';
import type { StatePart } from '../core/parameters.ts';
import { keys } from '../core/records/keys.ts';
import type { CheckpointManifest, ComponentCheckpoint, ShardInfo } from '../core/records/schema.ts';
import { dtypeBytes, readSafetensorsStream, safetensorsPieces } from './safetensors.ts';
import type { MemoryTensor } from './safetensors.ts';

/**
 * Size of a shard: small enough to hash and write while training runs, large enough for a fast disk; a multiple of the
 * digest's blocks.
 */
export const defaultShardBytes = 256 * 1024 * 1024;

export interface EncodedShard {
  /** The file as pieces of the values themselves, which must not change before they are written. */
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;
  readonly tensors: ShardInfo['tensors'];
}

/**
 * One shard: the elements of a part from `start` on, without a copy. `origin` is written into the shard's metadata, so
 * that no two checkpoints share a shard and one can be removed at any time.
 */
export function encodeShard(
  part: string,
  start: number,
  values: Float32Array | Uint16Array,
  origin: Readonly<Record<string, string>>,
): EncodedShard {
  const pieces = safetensorsPieces({ [part]: tensorOf(values) }, origin);
  return {
    pieces,
    bytes: pieces.reduce((sum, piece) => sum + piece.byteLength, 0),
    tensors: [{ name: part, start, end: start + values.length }],
  };
}

const tensorOf = (data: Float32Array | Uint16Array): MemoryTensor =>
  data instanceof Float32Array
    ? { dtype: 'F32', data, shape: [data.length] }
    : { dtype: 'BF16', data, shape: [data.length] };

/**
 * Streams the pieces of one shard to the sinks that `sinkOf` returns. `parts`: those of the state. Throws TerminalError
 * `DamagedShard` when its content does not match the manifest; the pieces received until then must not be used.
 */
export function readShard(
  shard: ShardInfo,
  parts: readonly Pick<StatePart, 'name' | 'dtype'>[],
  file: AsyncIterable<Uint8Array>,
  sinkOf: (piece: StatePiece) => ByteSink,
): Promise<void> {
  return readShardTensors(shard, file, ({ name, start, end }) => {
    const part = parts.find((one) => one.name === name);
    return part && { dtype: part.dtype, sink: () => sinkOf({ part: name, start, end }) };
  });
}

/** The parts of fp32 weights that are published alone. */
export const weightsAlone = [{ name: 'weights', dtype: 'F32' }] as const;

/**
 * The same with any tensors: `expected` says which type one has, and which sink; undefined: it does not belong here.
 */
export async function readShardTensors(
  shard: ShardInfo,
  file: AsyncIterable<Uint8Array>,
  expected: (
    tensor: ShardInfo['tensors'][number],
  ) => { readonly dtype: 'F32' | 'BF16'; readonly sink: () => ByteSink } | undefined,
): Promise<void> {
  const missing = new Map(shard.tensors.map((tensor) => [tensor.name, tensor]));
  await readSafetensorsStream(file, shard.bytes, shard.blob, ({ name, dtype, begin, end: dataEnd }) => {
    const tensor = missing.get(name);
    const found = tensor && expected(tensor);
    if (tensor === undefined || found === undefined) throw damagedShard(shard, `${name} is not in the manifest`);
    const { start, end } = tensor;
    if (dtype !== found.dtype || dataEnd - begin !== dtypeBytes[dtype] * (end - start))
      throw damagedShard(shard, `${name} ${start}–${end} holds ${dataEnd - begin} bytes of ${dtype}`);
    missing.delete(name);
    return found.sink();
  });
  const [absent] = missing.keys();
  if (absent !== undefined) throw damagedShard(shard, `${absent} is not in it`);
}

function damagedShard({ blob }: ShardInfo, why: string): TerminalError {
  return new TerminalError('DamagedShard', `${blob}: ${why}`, { where: blob });
}

/** Elements of all parameters. */
export function checkpointElements({ parameters }: Pick<ComponentCheckpoint, 'parameters'>): number {
  return parameters.reduce((sum, { shape }) => sum + shape.reduce((size, length) => size * length, 1), 0);
}

export function damagedCheckpoint(manifest: CheckpointManifest, why: string): TerminalError {
  const where = keys.checkpoint(manifest.runId, manifest.iteration, manifest.stateDigest);
  return new TerminalError('DamagedCheckpoint', `${where}: ${why}`, { where });
}
