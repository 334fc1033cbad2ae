/** The state of a model of a group: its bytes go through shared memory, each rank takes and gives what it has. */
import { at } from '../../../../core/at.ts';
import type { ByteSink } from '../../../../core/byte-sink.ts';
import { InvalidInputError } from '../../../../core/errors.ts';
import type { PolicyOptions } from '../../../../core/ports/engines.ts';
import type { Call, StateSource } from '../../../../core/ports/policy.ts';
import type { BlockHash, EngineParameter, StatePart, WeightsFormat } from '../../../../core/parameters.ts';
import { bytesOfDtype, publishedBytes } from '../../../../core/records/publications.ts';
import { partsOf } from '../../../../core/records/state-parts.ts';
import { blockHasher } from '../../../../log/objects/block-hasher.ts';
import { Layout } from './layout.ts';
import type { RankGroup } from './rank-group.ts';

/** A parameter as a rank names it. */
export type NamedShape = Pick<EngineParameter, 'name' | 'shape' | 'fixed'>;

/** Bytes that go through shared memory in one call. */
const pieceBytes = 8 << 20;

export class RankState {
  readonly parameters: readonly EngineParameter[];
  readonly elements: number;
  readonly parts: readonly StatePart[];
  steps = 0;
  readonly #group: RankGroup;

  constructor(group: RankGroup, named: readonly NamedShape[], { compute, trainable }: PolicyOptions) {
    this.#group = group;
    this.parameters = laidOut(named, compute === 'bf16' ? 'BF16' : 'F32');
    this.elements = this.parameters.reduce((sum, { size }) => sum + size, 0);
    this.parts = partsOf(this.elements, trainable);
  }

  async load(source: StateSource, call?: Call): Promise<void> {
    if (source.type === 'folder') {
      const { folder, newHead = false } = source;
      await this.#group.exclusive('loadFolder', { folder, newHead }, call);
      this.steps = 0;
      return;
    }
    if (source.type === 'pieces') {
      await source.read(({ part, start, end }) => {
        const { dtype } = this.#part(part);
        return this.#writer(part, dtype, start * bytesOfDtype[dtype], end * bytesOfDtype[dtype], call);
      });
      this.steps = source.steps;
    } else {
      const dtype = this.#published(source.format);
      await source.read((start, end) => this.#writer('weights', dtype, start, end, call));
    }
    await this.#group.exclusive('loaded', { steps: this.steps }, call);
  }

  async read(part: string, start: number, into: Float32Array | Uint16Array): Promise<void> {
    const { dtype } = this.#part(part);
    if (into.BYTES_PER_ELEMENT !== bytesOfDtype[dtype])
      throw new InvalidInputError(`${part} has values of type ${dtype}`);
    const bytes = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
    await this.#read(part, dtype, start * bytesOfDtype[dtype], bytes);
  }

  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    return this.#read('weights', this.#published(format), start, into);
  }

  async blockDigests(part: string, blockBytes: number, hash: BlockHash, call?: Call): Promise<Uint8Array> {
    const { dtype, elements } = this.#part(part);
    return this.#digests(part, dtype, elements * bytesOfDtype[dtype], blockBytes, hash, call);
  }

  publishedDigests(blockBytes: number, call?: Call): Promise<Uint8Array> {
    const bytes = publishedBytes(this.parameters, 'BF16');
    return this.#digests('weights', this.#published('BF16'), bytes, blockBytes, 'blake3', call);
  }

  #part(name: string): StatePart {
    const found = this.parts.find((part) => part.name === name);
    if (found !== undefined) return found;
    const names = this.parts.map((part) => part.name).join(', ');
    throw new InvalidInputError(`this state has the parts ${names}, not ${name}`);
  }

  /** What the ranks give in this format. */
  #published(format: WeightsFormat): 'F32' | 'BF16' {
    if (format === 'F32' || at(this.parameters, 0).computed === 'BF16') return format;
    throw new InvalidInputError('a model that computes in fp32 publishes no BF16');
  }

  /** Takes bytes [start, end) of a part's values in this type. */
  #writer(part: string, dtype: 'F32' | 'BF16', start: number, end: number, call?: Call): ByteSink {
    let next = start;
    return async (bytes) => {
      if (next + bytes.length > end) throw new InvalidInputError(`more bytes than ${part} has from ${start} to ${end}`);
      for (let done = 0; done < bytes.length; done += pieceBytes) {
        const piece = bytes.subarray(done, done + pieceBytes);
        const from = next;
        next += piece.length;
        await this.#group.turn(async () => {
          const place = new Layout().place('U8', piece.length);
          this.#group.memory.grow(piece.length);
          this.#group.memory.write(place.at, piece);
          await this.#group.call('put', { part, dtype, start: from, bytes: place });
        });
        call?.tick?.();
      }
    };
  }

  async #read(part: string, dtype: 'F32' | 'BF16', start: number, into: Uint8Array): Promise<void> {
    for (let done = 0; done < into.length; done += pieceBytes) {
      const piece = into.subarray(done, done + pieceBytes);
      await this.#group.turn(async () => {
        const place = new Layout().place('U8', piece.length);
        this.#group.memory.grow(piece.length);
        await this.#group.call('get', { part, dtype, start: start + done, bytes: place });
        this.#group.memory.read(place.at, piece);
      });
    }
  }

  async #digests(
    part: string,
    dtype: 'F32' | 'BF16',
    bytes: number,
    blockBytes: number,
    hash: BlockHash,
    call?: Call,
  ): Promise<Uint8Array> {
    const hasher = await blockHasher(hash);
    const digests: Uint8Array[] = [];
    const blocks = Math.max(1, Math.floor(pieceBytes / blockBytes));
    const buffer = new Uint8Array(Math.min(bytes, blocks * blockBytes));
    for (let from = 0; from < bytes; from += buffer.length) {
      const some = buffer.subarray(0, Math.min(buffer.length, bytes - from));
      await this.#read(part, dtype, from, some);
      for (let block = 0; block < some.length; block += blockBytes) {
        hasher.update(some.subarray(block, block + blockBytes));
        digests.push(hasher.digest());
      }
      call?.tick?.();
    }
    return Buffer.concat(digests);
  }
}

/** One after the other, as the ranks have sorted them. */
function laidOut(named: readonly NamedShape[], computed: EngineParameter['computed']): EngineParameter[] {
  let offset = 0;
  return named.map(({ name, shape, fixed }) => {
    const size = shape.reduce((product, length) => product * length, 1);
    const parameter = { name, shape, offset, size, computed, ...(fixed && { fixed }) };
    offset += size;
    return parameter;
  });
}
