/**
 * Reading the tensors of a model folder: one `model.safetensors`, or shards listed by `model.safetensors.index.json`.
 */
import { type FileHandle, open, readFile, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { Fields, isObject, show } from '../fields.ts';
import { foreignFile, saveAsSafetensors } from '../foreign-file.ts';
import { widenBf16, widenF16 } from './convert.ts';
import { dtypeBytes, headerLength, parseHeader, type TensorEntry } from './header.ts';

/** Bytes read at a time; a tensor of any size is read through a buffer of this length. */
const chunkBytes = 4 << 20;

export interface FolderTensor extends TensorEntry {
  readonly file: string;
  /** Byte position in the file. */
  readonly position: number;
}

/** The open files of a model folder. Close it. */
export class TensorFolder {
  readonly folder: string;
  readonly tensors: ReadonlyMap<string, FolderTensor>;
  readonly #files: ReadonlyMap<string, FileHandle>;

  constructor(folder: string, tensors: ReadonlyMap<string, FolderTensor>, files: ReadonlyMap<string, FileHandle>) {
    this.folder = folder;
    this.tensors = tensors;
    this.#files = files;
  }

  /**
   * The bytes of a tensor in pieces of at most 4 MiB, always whole elements. A piece is valid until the next one is
   * read.
   */
  async *stream(name: string): AsyncGenerator<Uint8Array> {
    const tensor = this.#find(name);
    const file = this.#files.get(tensor.file) as FileHandle;
    const total = tensor.end - tensor.begin;
    const buffer = new Uint8Array(Math.min(chunkBytes, total));
    for (let at = 0; at < total; at += buffer.length) {
      const piece = buffer.subarray(0, Math.min(buffer.length, total - at));
      await readFully(file, piece, tensor.position + at, tensor.file);
      yield piece;
    }
  }

  /** The values of an F32, BF16 or F16 tensor, in pieces as of `stream`, in a buffer that the next piece uses again. */
  async *values(name: string): AsyncGenerator<Float32Array> {
    const tensor = this.#find(name);
    const width = dtypeBytes[tensor.dtype];
    let wide = new Float32Array();
    for await (const bytes of this.stream(name)) {
      const count = bytes.length / width;
      if (tensor.dtype === 'F32') {
        yield new Float32Array(bytes.buffer, bytes.byteOffset, count);
        continue;
      }
      if (wide.length < count) wide = new Float32Array(count);
      const part = wide.subarray(0, count);
      if (tensor.dtype === 'BF16') widenBf16(new Uint16Array(bytes.buffer, bytes.byteOffset, count), part);
      else if (tensor.dtype === 'F16') widenF16(new Uint16Array(bytes.buffer, bytes.byteOffset, count), part);
      else
        throw new InvalidInputError(
          `${tensor.file}: tensor ${name}: dtype ${tensor.dtype} is not supported; supported: F32, BF16, F16`,
        );
      yield part;
    }
  }

  async close(): Promise<void> {
    for (const file of this.#files.values()) await file.close();
  }

  #find(name: string): FolderTensor {
    const tensor = this.tensors.get(name);
    if (tensor === undefined) throw new InvalidInputError(`${this.folder}: there is no tensor ${name}`);
    return tensor;
  }
}

/** Opens and checks every file's header; reads no data. Throws InvalidInputError naming file and reason. */
export async function openSafetensors(folder: string): Promise<TensorFolder> {
  const shards = await findShards(folder);
  const files = new Map<string, FileHandle>();
  const tensors = new Map<string, FolderTensor>();
  try {
    for (const name of shards.files) {
      const path = join(folder, name);
      const file = await openShard(path);
      files.set(path, file);
      for (const tensor of await readHeader(file, path).catch(asForeign(path))) {
        const other = tensors.get(tensor.name);
        if (other !== undefined)
          throw new InvalidInputError(`${path}: tensor ${tensor.name} is also in ${basename(other.file)}`, {
            where: path,
          });
        tensors.set(tensor.name, tensor);
      }
    }
    for (const [tensor, file] of shards.places) {
      if (tensors.get(tensor)?.file !== join(folder, file)) {
        throw new InvalidInputError(
          `${join(folder, file)}: tensor ${tensor}, which model.safetensors.index.json places here, is missing`,
        );
      }
    }
  } catch (error) {
    for (const file of files.values()) await file.close();
    throw error;
  }
  return new TensorFolder(folder, tensors, files);
}

/** A file that is no safetensors file at all is named as what it is. */
const asForeign =
  (path: string) =>
  async (error: unknown): Promise<never> => {
    throw (await foreignFile(path, 'safetensors')) ?? error;
  };

async function readHeader(file: FileHandle, path: string): Promise<FolderTensor[]> {
  const { size } = await file.stat();
  const first8 = new Uint8Array(Math.min(8, size));
  await readFully(file, first8, 0, path);
  const json = new Uint8Array(headerLength(first8, size, path));
  await readFully(file, json, 8, path);
  const header = parseHeader(json, size - 8 - json.length, path);
  return header.tensors.map((tensor) => ({ ...tensor, file: path, position: header.dataStart + tensor.begin }));
}

async function readFully(file: FileHandle, target: Uint8Array, position: number, path: string): Promise<void> {
  for (let at = 0; at < target.length; ) {
    const { bytesRead } = await file.read(target, at, target.length - at, position + at);
    if (bytesRead === 0)
      throw new InvalidInputError(`${path}: ends at byte ${position + at}, expected ${position + target.length}`, {
        where: path,
      });
    at += bytesRead;
  }
}

async function openShard(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (cause) {
    throw new InvalidInputError(`${path}: cannot be opened`, { where: path, cause });
  }
}

interface Shards {
  readonly files: readonly string[];
  /** Tensor → file, from the index. */
  readonly places: ReadonlyMap<string, string>;
}

async function findShards(folder: string): Promise<Shards> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (cause) {
    throw new InvalidInputError(`${folder}: there is no such model folder`, { where: folder, cause });
  }
  const index = 'model.safetensors.index.json';
  const shards = names.includes(index) ? await readIndex(join(folder, index)) : undefined;
  refuseOthers(folder, names, shards?.files ?? []);
  if (names.includes('model.safetensors')) return { files: ['model.safetensors'], places: new Map() };
  if (shards !== undefined) return shards;
  const others = names.filter((name) => /\.(bin|pt|pth|gguf|safetensors)$/.test(name));
  throw new InvalidInputError(
    `${folder}: expected model.safetensors or ${index}, found ${others.length > 0 ? others.join(', ') : 'no weights'}`,
    {
      where: folder,
      hint: saveAsSafetensors(folder),
    },
  );
}

/** Refuses files that belong to the model as well as those that would be read: nobody can say which ones are meant. */
function refuseOthers(folder: string, names: readonly string[], listed: readonly string[]): void {
  const refuse = (message: string, hint: string) =>
    new InvalidInputError(`${folder}: ${message}`, { where: folder, hint });
  const present = listed.filter((name) => name !== 'model.safetensors' && names.includes(name));
  if (names.includes('model.safetensors') && present.length > 0)
    throw refuse(
      `there are weights in model.safetensors and in the shards of model.safetensors.index.json (${present[0]})`,
      'move the weights that are not meant to another folder',
    );
  const shard = /^model-\d+-of-\d+\.safetensors$/;
  const left = listed.length === 0 ? [] : names.filter((name) => shard.test(name) && !listed.includes(name));
  if (left.length > 0)
    throw refuse(
      `${left[0]} is not in model.safetensors.index.json`,
      'move it to another folder, or save the model again: the index names every shard',
    );
  if (names.includes('adapter_config.json'))
    throw refuse(
      'adapter_config.json: the folder holds a low-rank adapter beside the weights, and only the weights would be read',
      'merge the adapter into the weights (peft: merge_and_unload), or move it to another folder',
    );
}

async function readIndex(path: string): Promise<Shards> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    throw new InvalidInputError(`${path}: not valid JSON`, { where: path, cause });
  }
  const map = new Fields(parsed, path).get('weight_map');
  if (!isObject(map))
    throw new InvalidInputError(`${path}: weight_map must be an object, found ${show(map)}`, { where: path });
  const places = new Map<string, string>();
  for (const [tensor, file] of Object.entries(map)) {
    if (typeof file !== 'string' || basename(file) !== file || !file.endsWith('.safetensors')) {
      throw new InvalidInputError(
        `${path}: weight_map.${tensor} must name a .safetensors file beside it, found ${show(file)}`,
        { where: path },
      );
    }
    places.set(tensor, file);
  }
  return { files: [...new Set(places.values())].sort(), places };
}
