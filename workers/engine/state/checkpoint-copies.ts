/**
 * Memory for the copy of a state that is being written. Fresh memory is expensive: the first touch of its pages takes
 * several times as long as the copy itself. So the memory of the last copy, as large as the state, is kept while its
 * engine lives.
 */
import { at } from '../../../core/at.ts';
import type { PolicyEngine } from '../../../core/ports/policy.ts';
import type { StatePart } from '../../../core/parameters.ts';
import { bytesOfDtype } from '../../../core/records/publications.ts';

/**
 * Memory for each part of a state, in their order. It can be transferred to another thread; then this thread no longer
 * has it.
 */
export type Room = readonly ArrayBuffer[];

export class CheckpointCopies {
  #kept: Room | undefined;
  /** Bytes of the parts of the current engine's state; none without one. */
  #sizes: readonly number[] = [];

  /** Is there memory for a copy of this engine's state? */
  hasRoomFor(engine: Pick<PolicyEngine, 'parts'>): boolean {
    this.#sizes = sizesOf(engine);
    return this.#kept !== undefined && this.#fits(this.#kept);
  }

  /** Copies the engine's state. A second copy while the first is in use gets its own memory. */
  async copy(engine: Pick<PolicyEngine, 'parts' | 'read'>): Promise<Room> {
    const room = this.hasRoomFor(engine) && this.#kept !== undefined ? this.#kept : freshRoom(this.#sizes);
    this.#kept = undefined;
    for (const [i, part] of engine.parts.entries()) await engine.read(part.name, 0, valuesIn(part, at(room, i)));
    return room;
  }

  /** Takes memory for the next copy: from a finished write, or new memory whose pages were touched. */
  giveBack(room: Room): void {
    if (this.#fits(room)) this.#kept ??= room;
  }

  /** The engine is closed: frees its memory and keeps none from now on. */
  empty(): Room | undefined {
    const kept = this.#kept;
    this.#kept = undefined;
    this.#sizes = [];
    return kept;
  }

  #fits(room: Room): boolean {
    return room.length > 0 && room.map(({ byteLength }) => byteLength).join() === this.#sizes.join();
  }
}

/** Bytes of each part. */
export const sizesOf = ({ parts }: Pick<PolicyEngine, 'parts'>): readonly number[] =>
  parts.map(({ dtype, elements }) => elements * bytesOfDtype[dtype]);

export const freshRoom = (sizes: readonly number[]): Room => sizes.map((bytes) => new ArrayBuffer(bytes));

/** The values of a part in its memory. */
export const valuesIn = ({ dtype }: Pick<StatePart, 'dtype'>, memory: ArrayBuffer): Float32Array | Uint16Array =>
  dtype === 'F32' ? new Float32Array(memory) : new Uint16Array(memory);
