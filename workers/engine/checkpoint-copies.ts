/**
 * Memory for the copy of a state that is being written. Fresh memory is expensive: the first touch of its pages takes
 * several times as long as the copy itself. So the memory of the last copy, as large as the state, is kept while its
 * trainer lives.
 */
import type { TrainerEngine } from '../../core/ports.ts';

/**
 * Memory for weights, m and v, of equal size. It can be transferred to another thread; then this thread no longer has
 * it.
 */
export type Room = readonly [weights: ArrayBuffer, m: ArrayBuffer, v: ArrayBuffer];

export class CheckpointCopies {
  #kept: Room | undefined;
  /** Bytes of each part of the current trainer; 0 without one. */
  #bytes = 0;

  /** Is there memory for a copy of this trainer's state? */
  hasRoomFor({ weights }: TrainerEngine): boolean {
    this.#bytes = weights.byteLength;
    return this.#kept?.[0].byteLength === this.#bytes;
  }

  /** Copies the trainer's state. A second copy while the first is in use gets its own memory. */
  copy(trainer: TrainerEngine): Room {
    const room = this.hasRoomFor(trainer) && this.#kept !== undefined ? this.#kept : freshRoom(this.#bytes);
    this.#kept = undefined;
    const { weights, m, v } = trainer;
    [weights, m, v].forEach((part, i) => new Float32Array(room[i] as ArrayBuffer).set(part));
    return room;
  }

  /** Takes memory for the next copy: from a finished write, or new memory whose pages were touched. */
  giveBack(room: Room): void {
    if (room[0].byteLength === this.#bytes) this.#kept ??= room;
  }

  /** The trainer is closed: frees its memory and keeps none from now on. */
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
