/**
 * Writes model weights as F32 or BF16, in one file or in shards with an index. They need not be in memory at once: each
 * piece goes to its place in its file as it comes.
 */
import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { roundToBf16 } from './convert.ts';
import { elements, layOut } from './header.ts';
import type { NamedShape, Tensors } from './tensors.ts';
import { streamOf } from './tensors.ts';

export type StoredDtype = 'F32' | 'BF16';

export interface ShardOptions {
  readonly dtype: StoredDtype;
  /**
   * A file holds at most this many bytes of data, unless one tensor alone is larger. Default 5 GB, as in transformers.
   */
  readonly maxShardBytes?: number;
}

/** Values converted at a time: 4 MiB of float32. */
const chunkValues = 1 << 20;

/**
 * Writes `model.safetensors`, or `model-0000i-of-0000n.safetensors` and the index. Equal tensors give equal bytes.
 * Throws RangeError for a tensor with more or fewer values than its shape has.
 */
export async function writeModelFiles(folder: string, given: Tensors, options: ShardOptions): Promise<string[]> {
  const tensors = streamOf(given);
  const sorted = [...tensors.shapes].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const shards = cutShards(sorted, options);
  if (shards.length <= 1) {
    await writeSafetensors(join(folder, 'model.safetensors'), tensors, options.dtype);
    return ['model.safetensors'];
  }
  const names = shards.map((_, i) => `model-${pad(i + 1)}-of-${pad(shards.length)}.safetensors`);
  const files = shards.map((shapes, i) => ({ path: join(folder, names[i] as string), shapes }));
  await writeFiles(files, tensors, options.dtype);
  const places = shards.flatMap((shard, i) => shard.map(({ name }) => [name, names[i] as string] as const));
  const totalSize = sorted.reduce((sum, { shape }) => sum + bytesOf(shape, options.dtype), 0);
  const index = { metadata: { total_size: totalSize }, weight_map: Object.fromEntries(places) };
  await writeFile(join(folder, 'model.safetensors.index.json'), `${JSON.stringify(index, null, 2)}\n`);
  return [...names, 'model.safetensors.index.json'];
}

/** One new file, synced. Throws RangeError as above. */
export async function writeSafetensors(path: string, given: Tensors, dtype: StoredDtype): Promise<void> {
  const tensors = streamOf(given);
  await writeFiles([{ path, shapes: tensors.shapes }], tensors, dtype);
}

interface NewFile {
  readonly path: string;
  readonly shapes: readonly NamedShape[];
}

/** Where a tensor's values go, and how many have come. */
interface Place {
  readonly file: FileHandle;
  readonly position: number;
  readonly shape: readonly number[];
  written: number;
}

async function writeFiles(files: readonly NewFile[], { send }: ReturnType<typeof streamOf>, dtype: StoredDtype) {
  const handles: FileHandle[] = [];
  const places = new Map<string, Place>();
  const width = dtype === 'F32' ? 4 : 2;
  try {
    for (const { path, shapes } of files) {
      // transformers requires the metadata `format: pt`.
      const layout = layOut(
        shapes.map(({ name, shape }) => ({ name, shape, dtype })),
        { format: 'pt' },
      );
      const file = await open(path, 'w');
      handles.push(file);
      await writeFully(file, layout.header, 0);
      for (const { name, shape, begin } of layout.tensors)
        places.set(name, { file, position: layout.header.length + begin, shape, written: 0 });
    }
    await send(async ({ name, start, values }) => {
      const place = places.get(name);
      if (place === undefined) throw new RangeError(`${name}: its shape was not named`);
      place.written += values.length;
      if (start + values.length > elements(place.shape)) throw wrongCount(name, place);
      await writeValues(place.file, place.position + start * width, values, dtype);
    });
    for (const [name, place] of places) if (place.written !== elements(place.shape)) throw wrongCount(name, place);
    for (const file of handles) await file.sync();
  } finally {
    for (const file of handles) await file.close();
  }
}

const wrongCount = (name: string, { written, shape }: Place) =>
  new RangeError(`${name}: ${written} values for shape [${shape.join(', ')}]`);

async function writeValues(file: FileHandle, position: number, data: Float32Array, dtype: StoredDtype): Promise<void> {
  const rounded = dtype === 'BF16' ? new Uint16Array(Math.min(chunkValues, data.length)) : undefined;
  let next = position;
  for (let at = 0; at < data.length; at += chunkValues) {
    const part = data.subarray(at, at + chunkValues);
    if (rounded !== undefined) roundToBf16(part, rounded);
    const stored = rounded === undefined ? part : rounded.subarray(0, part.length);
    await writeFully(file, new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength), next);
    next += stored.byteLength;
  }
}

async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; )
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
}

function cutShards(tensors: readonly NamedShape[], { dtype, maxShardBytes = 5e9 }: ShardOptions): NamedShape[][] {
  const shards: NamedShape[][] = [];
  let room = 0;
  for (const tensor of tensors) {
    const bytes = bytesOf(tensor.shape, dtype);
    if (bytes > room || shards.length === 0) {
      shards.push([]);
      room = maxShardBytes;
    }
    shards.at(-1)?.push(tensor);
    room -= bytes;
  }
  return shards;
}

const bytesOf = (shape: readonly number[], dtype: StoredDtype): number => elements(shape) * (dtype === 'F32' ? 4 : 2);

const pad = (index: number): string => String(index).padStart(5, '0');
