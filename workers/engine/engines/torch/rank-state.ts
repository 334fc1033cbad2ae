/** The state of a model of a group: its bytes go through shared memory, each rank takes and gives what it has. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { at } from '../../../../core/at.ts';
import type { ByteSink } from '../../../../core/byte-sink.ts';
import { InvalidInputError } from '../../../../core/errors.ts';
import { inOrder } from '../../../../core/parallel.ts';
import type { PolicyOptions } from '../../../../core/ports/engines.ts';
import type { Call, StateCopy, StateSource } from '../../../../core/ports/policy.ts';
import type { BlockHash, ComputeType, EngineParameter, StatePart, WeightsFormat } from '../../../../core/parameters.ts';
import { bytesOfDtype, publishedTensors } from '../../../../core/records/publications.ts';
import { partsOf } from '../../../../core/records/state-parts.ts';
import { blockDigests } from '../native/block-digests.ts';
import { Layout } from './layout.ts';
import type { RankGroup } from './rank-group.ts';

/** A parameter as a rank names it. */
export type NamedShape = Pick<EngineParameter, 'name' | 'shape' | 'fixed'> & {
  /** A model that computes in bf16 publishes it in bf16: it is a matrix, and not the embedding. */
  readonly rounded?: true;
};

/** Values of a part that are stored side by side in one type: from element `start` on, in bytes [first, end). */
interface Stretch {
  readonly dtype: 'F32' | 'BF16';
  readonly start: number;
  readonly first: number;
  readonly end: number;
}

/** Bytes that go through shared memory in one call. */
const pieceBytes = 8 << 20;
/** Blocks that are hashed together, each by one thread. */
const blocksAtOnce = 4;

export class RankState {
  readonly parameters: readonly EngineParameter[];
  readonly elements: number;
  readonly parts: readonly StatePart[];
  steps = 0;
  readonly #group: RankGroup;
  readonly #threads: number;
  /** Resolves when nobody reads the copy of before any more. */
  #copyIsFree: Promise<void> = Promise.resolve();

  constructor(
    group: RankGroup,
    named: readonly NamedShape[],
    { compute, trainable, threads }: Omit<PolicyOptions, 'deterministic'>,
  ) {
    this.#group = group;
    this.#threads = threads;
    this.parameters = laidOut(named, compute);
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
        const whole = stretchOf(this.#part(part));
        const width = bytesOfDtype[whole.dtype];
        return this.#writer(part, [whole], start * width, end * width, call);
      });
      this.steps = source.steps;
    } else {
      const stretches = this.#published(source.format);
      await source.read((start, end) => this.#writer('weights', stretches, start, end, call));
    }
    await this.#group.exclusive('loaded', { steps: this.steps }, call);
  }

  async read(part: string, start: number, into: Float32Array | Uint16Array): Promise<void> {
    const whole = stretchOf(this.#part(part));
    const width = bytesOfDtype[whole.dtype];
    if (into.BYTES_PER_ELEMENT !== width) throw new InvalidInputError(`${part} has values of type ${whole.dtype}`);
    const bytes = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
    await this.#read(part, [whole], start * width, bytes);
  }

  /** The ranks write what they have to its place in the copy. */
  async copy(call?: Call): Promise<StateCopy | undefined> {
    const before = this.#copyIsFree;
    let free = () => {};
    this.#copyIsFree = new Promise((resolve) => (free = resolve));
    await before;
    const { memory, close } = this.#group.useCopy();
    const release = () => {
      close();
      free();
    };
    try {
      const starts: number[] = [];
      let bytes = 0;
      for (const { dtype, elements } of this.parts) {
        starts.push(bytes);
        bytes += bytesOfDtype[dtype] * elements;
      }
      if (memory.reserve(bytes)) {
        const parts = this.parts.map(({ name, dtype }, i) => ({ name, dtype, start: at(starts, i) }));
        await this.#group.exclusive('copy', { parts }, call);
        return { fd: memory.fd, starts, release };
      }
    } catch (error) {
      release();
      throw error;
    }
    release();
    return undefined;
  }

  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    return this.#read('weights', this.#published(format), start, into);
  }

  async blockDigests(part: string, blockBytes: number, hash: BlockHash, call?: Call): Promise<Uint8Array> {
    return this.#digests(part, [stretchOf(this.#part(part))], blockBytes, hash, call);
  }

  publishedDigests(blockBytes: number, call?: Call): Promise<Uint8Array> {
    return this.#digests('weights', this.#published('BF16'), blockBytes, 'blake3', call);
  }

  #part(name: string): StatePart {
    const found = this.parts.find((part) => part.name === name);
    if (found !== undefined) return found;
    const names = this.parts.map((part) => part.name).join(', ');
    throw new InvalidInputError(`this state has the parts ${names}, not ${name}`);
  }

  /** How the weights are stored in this format. */
  #published(format: WeightsFormat): Stretch[] {
    if (format === 'BF16' && this.parameters.every(({ computed }) => computed === 'F32'))
      throw new InvalidInputError('a model that computes in fp32 publishes no BF16');
    const stretches: Stretch[] = [];
    for (const { dtype, start, firstByte, endByte } of publishedTensors(this.parameters, format)) {
      const before = stretches.at(-1);
      if (before?.dtype === dtype) stretches[stretches.length - 1] = { ...before, end: endByte };
      else stretches.push({ dtype, start, first: firstByte, end: endByte });
    }
    return stretches;
  }

  /** Takes bytes [start, end) of a part as it is stored. */
  #writer(part: string, stretches: readonly Stretch[], start: number, end: number, call?: Call): ByteSink {
    let next = start;
    return async (bytes) => {
      if (next + bytes.length > end) throw new InvalidInputError(`more bytes than ${part} has from ${start} to ${end}`);
      const from = next;
      next += bytes.length;
      for (const { piece, ...where } of pieces(stretches, from, bytes)) {
        await this.#group.turn(async () => {
          const place = new Layout().place('U8', piece.length);
          this.#group.memory.grow(piece.length);
          this.#group.memory.write(place.at, piece);
          await this.#group.call('put', { part, ...where, bytes: place });
        });
        call?.tick?.();
      }
    };
  }

  async #read(part: string, stretches: readonly Stretch[], start: number, into: Uint8Array): Promise<void> {
    for (const { piece, ...where } of pieces(stretches, start, into))
      await this.#group.turn(async () => {
        const place = new Layout().place('U8', piece.length);
        this.#group.memory.grow(piece.length);
        await this.#group.call('get', { part, ...where, bytes: place });
        this.#group.memory.read(place.at, piece);
      });
  }

  async #digests(
    part: string,
    stretches: readonly Stretch[],
    blockBytes: number,
    hash: BlockHash,
    call?: Call,
  ): Promise<Uint8Array> {
    const bytes = at(stretches, -1).end;
    const digests: Uint8Array[] = [];
    const size = Math.min(bytes, blocksAtOnce * blockBytes);
    const buffers = [new Uint8Array(size), new Uint8Array(size)];
    const read = async (from: number): Promise<Uint8Array> => {
      const some = at(buffers, (from / size) % 2).subarray(0, Math.min(size, bytes - from));
      await this.#read(part, stretches, from, some);
      return some;
    };
    const starts = Array.from({ length: Math.ceil(bytes / size) }, (_, i) => i * size);
    for await (const some of inOrder(starts, 2, read)) {
      await nextTurn(); // the ranks have been asked for the next ones, and copy them meanwhile
      digests.push(blockDigests(some, blockBytes, hash, this.#threads));
      call?.tick?.();
    }
    return Buffer.concat(digests);
  }
}

/** One after the other, as the ranks have sorted them. */
export function laidOut(named: readonly NamedShape[], compute: ComputeType): EngineParameter[] {
  let offset = 0;
  return named.map(({ name, shape, fixed, rounded }) => {
    const size = shape.reduce((product, length) => product * length, 1);
    const computed = compute === 'bf16' && rounded ? ('BF16' as const) : ('F32' as const);
    const parameter = { name, shape, offset, size, computed, ...(fixed && { fixed }) };
    offset += size;
    return parameter;
  });
}

const stretchOf = ({ dtype, elements }: StatePart): Stretch => ({
  dtype,
  start: 0,
  first: 0,
  end: elements * bytesOfDtype[dtype],
});

/**
 * Cuts bytes of a part, from byte `from` of how it is stored, into pieces of one type. `start`: the byte at which the
 * piece would begin if the whole part were stored in its type.
 */
function* pieces(stretches: readonly Stretch[], from: number, bytes: Uint8Array) {
  for (const { dtype, start, first, end } of stretches) {
    const last = Math.min(end, from + bytes.length);
    for (let low = Math.max(first, from); low < last; low += pieceBytes)
      yield {
        dtype,
        start: start * bytesOfDtype[dtype] + low - first,
        piece: bytes.subarray(low - from, Math.min(last, low + pieceBytes) - from),
      };
  }
}
