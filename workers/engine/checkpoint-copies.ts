/**
 * Memory for the copy of a state that is being written. Fresh memory is expensive: the first touch of its pages takes
 * several times as long as the copy itself. So the memory of the last copy, as large as the state, is kept while its
 * engine lives.
 */
import { at } from '../../core/at.ts';
import { stateParts } from '../../core/ports/policy.ts';
import type { PolicyEngine } from '../../core/ports/policy.ts';

/**
 * Memory for weights, m and v, of equal size. It can be transferred to another thread; then this thread no longer has
 * it.
 */
export type Room = readonly [weights: ArrayBuffer, m: ArrayBuffer, v: ArrayBuffer];

export class CheckpointCopies {
  #kept: Room | undefined;
  /** Bytes of each part of the current engine's state; 0 without one. */
  #bytes = 0;

  /** Is there memory for a copy of this engine's state? */
  hasRoomFor({ elements }: Pick<PolicyEngine, 'elements'>): boolean {
    this.#bytes = elements * Float32Array.BYTES_PER_ELEMENT;
    return this.#kept?.[0].byteLength === this.#bytes;
  }

  /** Copies the engine's state. A second copy while the first is in use gets its own memory. */
  async copy(engine: Pick<PolicyEngine, 'elements' | 'read'>): Promise<Room> {
    const room = this.hasRoomFor(engine) && this.#kept !== undefined ? this.#kept : freshRoom(this.#bytes);
    this.#kept = undefined;
    for (const [i, part] of stateParts.entries()) await engine.read(part, 0, new Float32Array(at(room, i)));
    return room;
  }

  /** Takes memory for the next copy: from a finished write, or new memory whose pages were touched. */
  giveBack(room: Room): void {
    if (room[0].byteLength === this.#bytes) this.#kept ??= room;
  }

  /** The engine is closed: frees its memory and keeps none from now on. */
  empty(): Room | undefined {
    const kept = this.#kept;
    this.#kept = undefined;
    this.#bytes = 0;
    return kept;
  }
}

export function freshRoom(bytes: number): Room {
  return [new ArrayBuffer(bytes), new ArrayBuffer(bytes), new ArrayBuffer(bytes)];
}
