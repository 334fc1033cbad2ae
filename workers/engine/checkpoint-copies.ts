/**
 * Room for the copy of a state that is being written. Fresh memory is dear: the first touch of its pages takes several
 * times as long as the copy. So the room of the last copy is kept, as large as the state itself, while its trainer lives.
 */
import type { TrainerEngine } from '../../core/ports.ts';

/** Memory for weights, m and v, of equal size. Who holds it can give it to another thread, and then has it no more. */
export type Room = readonly [weights: ArrayBuffer, m: ArrayBuffer, v: ArrayBuffer];

export class CheckpointCopies {
  #kept: Room | undefined;
  /** Bytes of each part of the present trainer; 0 without one. */
  #bytes = 0;

  /** Is there room for a copy of this trainer's state? */
  hasRoomFor({ weights }: TrainerEngine): boolean {
    this.#bytes = weights.byteLength;
    return this.#kept?.[0].byteLength === this.#bytes;
  }

  /** A copy of the trainer's state. A second one while the first is out has memory of its own. */
  copy(trainer: TrainerEngine): Room {
    const room = this.hasRoomFor(trainer) && this.#kept !== undefined ? this.#kept : freshRoom(this.#bytes);
    this.#kept = undefined;
    const { weights, m, v } = trainer;
    [weights, m, v].forEach((part, i) => new Float32Array(room[i] as ArrayBuffer).set(part));
    return room;
  }

  /** Room for the next copy: one is written, or its pages were touched beforehand. */
  giveBack(room: Room): void {
    if (room[0].byteLength === this.#bytes) this.#kept ??= room;
  }

  /** The trainer is closed: what was kept for it, and nothing is kept any more. */
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
