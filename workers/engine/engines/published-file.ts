/**
 * A publication of weights as a file of safetensors that any server loads. The bytes come in the order of the
 * publication, and lie in the file as the library lays them out.
 */
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { at } from '../../../core/at.ts';
import { inOrder } from '../../../core/parallel.ts';
import { InvalidInputError } from '../../../core/errors.ts';
import type { BlockHash, EngineParameter, WeightsFormat } from '../../../core/parameters.ts';
import type { Call, StateSource } from '../../../core/ports/policy.ts';
import { publishedBytes, publishedTensors } from '../../../core/records/publications.ts';
import type { PublishedTensor } from '../../../core/records/publications.ts';
import type { Digest } from '../../../core/ids.ts';
import { blockBytes, treeRoot } from '../../../log/objects/digest.ts';
import { blockDigests } from './native/block-digests.ts';
import { layOut, openSafetensors } from '../../../models/safetensors.ts';

/** Blocks that are hashed together, each by one thread. */
const blocksAtOnce = 4;
/** Bytes that are copied at a time. */
const pieceBytes = 8 << 20;

/** A tensor of the publication, and the byte of the file at which it begins. */
interface Placed extends PublishedTensor {
  readonly place: number;
}

export class PublishedFile {
  readonly format: WeightsFormat;
  /** Bytes of the publication. */
  readonly bytes: number;
  readonly #file: FileHandle;
  readonly #tensors: readonly Placed[];
  /** Digests of blocks that came whole, hashed while they were written; by their first byte. */
  readonly #leaves = new Map<number, Uint8Array>();

  private constructor(file: FileHandle, format: WeightsFormat, bytes: number, tensors: readonly Placed[]) {
    this.format = format;
    this.bytes = bytes;
    this.#file = file;
    this.#tensors = tensors;
  }

  /** A new file, in which every value is 0 and takes no room on most disks. */
  static async create(
    path: string,
    parameters: readonly EngineParameter[],
    format: WeightsFormat,
  ): Promise<PublishedFile> {
    const { header, placed } = placedTensors(parameters, format);
    const file = await open(path, 'w+');
    const bytes = publishedBytes(parameters, format);
    try {
      await file.write(header);
      await file.truncate(header.length + bytes);
    } catch (error) {
      await file.close();
      throw error;
    }
    return new PublishedFile(file, format, bytes, placed);
  }

  /** A file that a worker has created and filled. */
  static async open(
    path: string,
    parameters: readonly EngineParameter[],
    format: WeightsFormat,
  ): Promise<PublishedFile> {
    const { placed } = placedTensors(parameters, format);
    return new PublishedFile(await open(path, 'r'), format, publishedBytes(parameters, format), placed);
  }

  /** Takes the values of a source; all of them must come. `hash`: that of the digest that will be asked for. */
  async fill(source: StateSource, hash: BlockHash, call?: Call): Promise<void> {
    this.#leaves.clear();
    if (source.type === 'folder') return this.#fillFromFolder(source.folder, call);
    if (source.type === 'published') {
      if (source.format !== this.format)
        throw new InvalidInputError(`weights in ${source.format} for a publication in ${this.format}`);
      return source.read((start) => this.#sink(start, { hash: this.#hashOf(hash), call }));
    }
    if (this.format !== 'F32') throw new InvalidInputError('pieces of a state are published in F32');
    return source.read(({ start }) => this.#sink(start * Float32Array.BYTES_PER_ELEMENT, { hash, call }));
  }

  /** Copies bytes of the publication from `start` on. */
  async read(start: number, into: Uint8Array): Promise<void> {
    for (const { place, from, to } of this.#spans(start, start + into.length))
      await readFully(this.#file, into.subarray(from - start, to - start), place);
  }

  /** Digest of the publication: of what came, where it came in large pieces, else of what lies in the file. */
  async digest(hash: BlockHash, call?: Call, threads = 1): Promise<Digest> {
    const used = this.#hashOf(hash);
    const size = Math.min(this.bytes, blocksAtOnce * blockBytes);
    const buffers = [Buffer.alloc(size), Buffer.alloc(size)];
    const leaves: Uint8Array[] = [];
    const starts = Array.from({ length: Math.ceil(this.bytes / size) }, (_, i) => i * size);
    const read = async (start: number): Promise<Uint8Array | undefined> => {
      if (this.#knownLeaves(start, size) !== undefined) return undefined;
      const some = at(buffers, (start / size) % 2).subarray(0, Math.min(size, this.bytes - start));
      await this.read(start, some);
      return some;
    };
    let start = 0;
    for await (const some of inOrder(starts, 2, read)) {
      leaves.push(...(some ? [blockDigests(some, blockBytes, used, threads)] : (this.#knownLeaves(start, size) ?? [])));
      start += size;
      call?.tick?.();
    }
    return treeRoot(this.bytes, Buffer.concat(leaves), used);
  }

  /** Copies the tensors of these names from `other`, with their rows in the reverse order, and the rest as it is. */
  async fillMirrored(other: PublishedFile, mirrored: ReadonlySet<string>, call?: Call): Promise<void> {
    for (const { name, shape, firstByte, endByte } of this.#tensors) {
      const rows = shape[0] ?? 1;
      const rowBytes = (endByte - firstByte) / rows;
      const most = Math.max(1, Math.floor(pieceBytes / rowBytes));
      for (let row = 0; row < rows; row += most) {
        const count = Math.min(most, rows - row);
        const piece = Buffer.alloc(count * rowBytes);
        const isMirrored = mirrored.has(name);
        await other.read(firstByte + (isMirrored ? rows - row - count : row) * rowBytes, piece);
        await this.#sink(firstByte + row * rowBytes, { call })(isMirrored ? reversedRows(piece, rowBytes) : piece);
      }
    }
  }

  /** Makes it durable: the server may be another machine. */
  sync(): Promise<void> {
    return this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** A publication in bf16 has one hash. */
  #hashOf(hash: BlockHash): BlockHash {
    return this.format === 'F32' ? hash : 'blake3';
  }

  /** Digests of the blocks in `size` bytes from `start` on; undefined unless all are known. */
  #knownLeaves(start: number, size: number): Uint8Array[] | undefined {
    const known: Uint8Array[] = [];
    for (let block = start; block < Math.min(start + size, this.bytes); block += blockBytes) {
      const leaf = this.#leaves.get(block);
      if (leaf === undefined) return undefined;
      known.push(leaf);
    }
    return known;
  }

  /** `hash`: absent where no digest is asked for. */
  #sink(
    start: number,
    { hash, call }: { readonly hash?: BlockHash; readonly call?: Call | undefined },
  ): (bytes: Uint8Array) => Promise<void> {
    let next = start;
    return async (bytes) => {
      const first = next;
      next += bytes.length;
      if (next > this.bytes) throw new InvalidInputError(`more bytes than the ${this.bytes} of the publication`);
      for (let from = first; from < next; ) {
        const to = Math.min(next, from - (from % blockBytes) + blockBytes);
        const some = bytes.subarray(from - first, to - first);
        const written = this.#write(from, some);
        // The bytes are still in the processor's caches.
        const isBlock = from % blockBytes === 0 && to === Math.min(this.bytes, from + blockBytes);
        if (hash !== undefined && isBlock) this.#leaves.set(from, blockDigests(some, blockBytes, hash, 1));
        await written;
        from = to;
      }
      call?.tick?.();
    };
  }

  async #write(start: number, bytes: Uint8Array): Promise<void> {
    const writes = [...this.#spans(start, start + bytes.length)].map(({ place, from, to }) =>
      writeFully(this.#file, bytes.subarray(from - start, to - start), place),
    );
    await Promise.all(writes);
  }

  async #fillFromFolder(folder: string, call?: Call): Promise<void> {
    if (this.format !== 'F32') throw new InvalidInputError('a folder is published in F32');
    const files = await openSafetensors(folder);
    try {
      for (const { name, place } of this.#tensors) {
        let next = place;
        for await (const values of files.values(name)) {
          await writeFully(this.#file, new Uint8Array(values.buffer, values.byteOffset, values.byteLength), next);
          next += values.byteLength;
          call?.tick?.();
        }
      }
    } finally {
      await files.close();
    }
  }

  /** Where bytes [start, end) of the publication lie in the file. */
  *#spans(start: number, end: number): Generator<{ place: number; from: number; to: number }> {
    for (let i = this.#indexAt(start); i < this.#tensors.length; i++) {
      const { firstByte, endByte, place } = at(this.#tensors, i);
      if (firstByte >= end) return;
      const [from, to] = [Math.max(start, firstByte), Math.min(end, endByte)];
      if (from < to) yield { place: place + from - firstByte, from, to };
    }
  }

  /** Index of the tensor that has this byte of the publication. */
  #indexAt(byte: number): number {
    let [low, high] = [0, this.#tensors.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(this.#tensors, middle).endByte > byte) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** The head of the file, and where each tensor of the publication lies in it. */
function placedTensors(parameters: readonly EngineParameter[], format: WeightsFormat) {
  const tensors = publishedTensors(parameters, format);
  const { header, tensors: laidOut } = layOut(tensors, { format: 'pt' });
  const begins = new Map(laidOut.map(({ name, begin }) => [name, header.length + begin]));
  return { header, placed: tensors.map((tensor): Placed => ({ ...tensor, place: begins.get(tensor.name) ?? 0 })) };
}

function reversedRows(piece: Buffer, rowBytes: number): Buffer {
  const reversed = Buffer.alloc(piece.length);
  for (let from = 0; from < piece.length; from += rowBytes)
    piece.copy(reversed, piece.length - rowBytes - from, from, from + rowBytes);
  return reversed;
}

async function writeFully(file: FileHandle, bytes: Uint8Array, place: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await file.write(bytes, done, bytes.length - done, place + done)).bytesWritten;
}

async function readFully(file: FileHandle, into: Uint8Array, place: number): Promise<void> {
  for (let done = 0; done < into.length; ) {
    const { bytesRead } = await file.read(into, done, into.length - done, place + done);
    if (bytesRead === 0) throw new Error('the file of the weights ends early');
    done += bytesRead;
  }
}
