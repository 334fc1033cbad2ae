/**
 * Published weights in the store: safetensors of whole tensors under their names, each in the type in which samplers
 * read it. The fp32 values are cut as in a checkpoint (checkpoint.ts).
 */
import type { ByteSink } from '../../../core/byte-sink.ts';
import type { PolicyEngine, StateSource } from '../../../core/ports/policy.ts';
import type { EngineParameter } from '../../../core/parameters.ts';
import { publishedTensors } from '../../../core/records/publications.ts';
import type { Publication, PublishedTensor } from '../../../core/records/publications.ts';
import type { ShardInfo, WeightsManifest } from '../../../core/records/schema.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import { putLargeBlob, putStreamedBlob, streamBlob } from '../../../log/objects/blobs.ts';
import { defaultShardBytes, readShardTensors } from '../../../models/checkpoint.ts';
import { layOut, safetensorsPieces } from '../../../models/safetensors.ts';
import type { MemoryTensor } from '../../../models/safetensors.ts';
import { savePart } from '../state/checkpoint.ts';
import type { PartToSave, ShardPlace } from '../state/checkpoint.ts';

type Published = Pick<WeightsManifest, 'shards' | 'dtypes'>;

/** Writes the shards of a publication. Its digest is in their bytes, so no other object has the same shards. */
export async function savePublished(
  place: ShardPlace,
  engine: PolicyEngine,
  { format, digest }: Publication,
): Promise<Published> {
  const origin = { weights: digest };
  if (format === 'F32') return { dtypes: { weights: 'F32' }, shards: await savePart(place, weightsOf(engine), origin) };
  const tensors = publishedTensors(engine.parameters, format);
  const shards: ShardInfo[] = [];
  const shardBytes = place.shardBytes ?? defaultShardBytes;
  for (const group of groupsOf(tensors, shardBytes)) {
    const [first] = group;
    const isLarge = first !== undefined && first.endByte - first.firstByte > shardBytes;
    const blob = isLarge
      ? await putTensor(place, engine, first, origin)
      : await putTensors(place, engine, group, origin);
    shards.push({ ...blob, tensors: group.map(({ name, start, end }) => ({ name, start, end })) });
  }
  return { dtypes: Object.fromEntries(tensors.map(({ name, dtype }) => [name, dtype])), shards };
}

/** Neighbours of together at most `shardBytes`. A larger tensor is alone. */
function groupsOf(tensors: readonly PublishedTensor[], shardBytes: number): PublishedTensor[][] {
  const groups: PublishedTensor[][] = [];
  let room = 0;
  for (const tensor of tensors) {
    const bytes = tensor.endByte - tensor.firstByte;
    if (bytes > room) {
      groups.push([]);
      room = shardBytes;
    }
    groups.at(-1)?.push(tensor);
    room -= bytes;
  }
  return groups;
}

type Origin = Readonly<Record<string, string>>;
type Blob = Pick<ShardInfo, 'blob' | 'bytes'>;

async function putTensors(
  place: ShardPlace,
  engine: PolicyEngine,
  group: readonly PublishedTensor[],
  origin: Origin,
): Promise<Blob> {
  const values: Record<string, MemoryTensor> = {};
  for (const tensor of group) values[tensor.name] = await copyOf(engine, tensor);
  const pieces = safetensorsPieces(values, origin);
  shardPoint(place);
  const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  return { blob: await putLargeBlob(place.store, place.runId, pieces), bytes };
}

/** Bytes of a large tensor that are copied at a time. */
const pieceBytes = 8 << 20;

/** A tensor that is larger than a shard is read twice instead of copied: to name its blob, and to send it. */
async function putTensor(
  place: ShardPlace,
  engine: PolicyEngine,
  { name, dtype, shape, firstByte, endByte }: PublishedTensor,
  origin: Origin,
): Promise<Blob> {
  const { header } = layOut([{ name, dtype, shape }], origin);
  async function* read(): AsyncGenerator<Uint8Array> {
    yield header;
    for (let at = firstByte; at < endByte; at += pieceBytes) {
      const piece = new Uint8Array(Math.min(pieceBytes, endByte - at)); // a store may still send the one before
      await engine.readPublished('BF16', at, piece);
      yield piece;
    }
  }
  shardPoint(place);
  const bytes = header.byteLength + endByte - firstByte;
  return { blob: await putStreamedBlob(place.store, place.runId, bytes, read), bytes };
}

const shardPoint = ({ iteration }: ShardPlace): void =>
  faultPoint('checkpoint.shard', { iteration, component: 'actor' });

/** The bytes must not change while they are hashed and sent. */
async function copyOf(engine: PolicyEngine, tensor: PublishedTensor): Promise<MemoryTensor> {
  const { dtype, shape, start, end, firstByte } = tensor;
  const data = dtype === 'F32' ? new Float32Array(end - start) : new Uint16Array(end - start);
  await engine.readPublished('BF16', firstByte, new Uint8Array(data.buffer));
  return { dtype, shape, data } as MemoryTensor;
}

/** The fp32 weights of an engine, copied shard by shard, for the same reason. */
export function weightsOf(engine: PolicyEngine): PartToSave {
  const read = async (start: number, end: number) => {
    const copy = new Float32Array(end - start);
    await engine.read('weights', start, copy);
    return copy;
  };
  return { name: 'weights', dtype: 'F32', elements: engine.elements, read };
}

/** The place of a publication. */
export interface PublishedPlace extends Pick<ShardPlace, 'store' | 'runId'> {
  readonly manifest: Published;
}

/**
 * A publication in BF16. `came` gets the bytes of each shard that has been read, in the order of the publication.
 * Reading throws TerminalError `DamagedShard`; the reader must hash the whole.
 */
export function roundedSource(
  parameters: readonly EngineParameter[],
  { store, runId, manifest: { shards, dtypes } }: PublishedPlace,
  came: (bytes: number) => void,
): StateSource {
  const known = new Map(publishedTensors(parameters, 'BF16').map((tensor) => [tensor.name, tensor]));
  const expectedIn =
    (sinkOf: (start: number, end: number) => ByteSink, count: (bytes: number) => void) =>
    ({ name, start, end }: ShardInfo['tensors'][number]) => {
      const tensor = known.get(name);
      if (tensor?.start !== start || tensor.end !== end || dtypes[name] !== tensor.dtype) return undefined;
      const { dtype, firstByte, endByte } = tensor;
      count(endByte - firstByte);
      return { dtype, sink: () => sinkOf(firstByte, endByte) };
    };
  return {
    type: 'published',
    format: 'BF16',
    read: async (sinkOf) => {
      for (const shard of byStart(shards)) {
        let bytes = 0;
        const expected = expectedIn(sinkOf, (more) => (bytes += more));
        await readShardTensors(shard, streamBlob(store, runId, shard.blob), expected);
        came(bytes);
      }
    },
  };
}

export const byStart = (shards: readonly ShardInfo[]): ShardInfo[] =>
  [...shards].sort((a, b) => (a.tensors[0]?.start ?? 0) - (b.tensors[0]?.start ?? 0));
