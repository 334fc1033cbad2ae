/** Writes model weights: float32 tensors streamed out as F32 or BF16, in one file or in shards with an index. */
import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { roundToBf16 } from './convert.ts';
import { elements, layOut } from './header.ts';

export type StoredDtype = 'F32' | 'BF16';

export interface FloatTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

export interface ShardOptions {
  readonly dtype: StoredDtype;
  /**
   * A file holds at most this many bytes of data, unless one tensor alone is larger. Default 5 GB, as in transformers.
   */
  readonly maxShardBytes?: number;
}

/** Values converted at a time: 4 MiB of float32. */
const chunkValues = 1 << 20;

/** Writes `model.safetensors`, or `model-0000i-of-0000n.safetensors` and the index. Equal tensors give equal bytes. */
export async function writeModelFiles(
  folder: string,
  tensors: readonly FloatTensor[],
  options: ShardOptions,
): Promise<string[]> {
  const sorted = [...tensors].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const shards = cutShards(sorted, options);
  if (shards.length <= 1) {
    await writeSafetensors(join(folder, 'model.safetensors'), sorted, options.dtype);
    return ['model.safetensors'];
  }
  const weightMap: Record<string, string> = {};
  const names = shards.map((_, i) => `model-${pad(i + 1)}-of-${pad(shards.length)}.safetensors`);
  for (const [i, shard] of shards.entries()) {
    const name = names[i] as string;
    await writeSafetensors(join(folder, name), shard, options.dtype);
    for (const tensor of shard) weightMap[tensor.name] = name;
  }
  const totalSize = sorted.reduce((sum, tensor) => sum + bytesOf(tensor, options.dtype), 0);
  const index = { metadata: { total_size: totalSize }, weight_map: weightMap };
  await writeFile(join(folder, 'model.safetensors.index.json'), `${JSON.stringify(index, null, 2)}\n`);
  return [...names, 'model.safetensors.index.json'];
}

/** One new file, synced. transformers requires the metadata `format: pt`. */
export async function writeSafetensors(
  path: string,
  tensors: readonly FloatTensor[],
  dtype: StoredDtype,
): Promise<void> {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const layout = layOut(
    tensors.map(({ name, shape }) => ({ name, shape, dtype })),
    { format: 'pt' },
  );
  const file = await open(path, 'w');
  try {
    await writeFully(file, layout.header);
    for (const { name, shape } of layout.tensors) {
      const { data } = byName.get(name) as FloatTensor;
      if (data.length !== elements(shape))
        throw new RangeError(`${name}: ${data.length} values for shape [${shape.join(', ')}]`);
      await writeValues(file, data, dtype);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

async function writeValues(file: FileHandle, data: Float32Array, dtype: StoredDtype): Promise<void> {
  const rounded = dtype === 'BF16' ? new Uint16Array(Math.min(chunkValues, data.length)) : undefined;
  for (let at = 0; at < data.length; at += chunkValues) {
    const part = data.subarray(at, at + chunkValues);
    if (rounded !== undefined) roundToBf16(part, rounded);
    const stored = rounded === undefined ? part : rounded.subarray(0, part.length);
    await writeFully(file, new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength));
  }
}

async function writeFully(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at, bytes.length - at)).bytesWritten;
}

function cutShards(tensors: readonly FloatTensor[], { dtype, maxShardBytes = 5e9 }: ShardOptions): FloatTensor[][] {
  const shards: FloatTensor[][] = [];
  let room = 0;
  for (const tensor of tensors) {
    const bytes = bytesOf(tensor, dtype);
    if (bytes > room || shards.length === 0) {
      shards.push([]);
      room = maxShardBytes;
    }
    shards.at(-1)?.push(tensor);
    room -= bytes;
  }
  return shards;
}

function bytesOf(tensor: FloatTensor, dtype: StoredDtype): number {
  return tensor.data.length * (dtype === 'F32' ? 4 : 2);
}

function pad(index: number): string {
  return String(index).padStart(5, '0');
}
