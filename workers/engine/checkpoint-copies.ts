/**
 * Room for the copy of a state that is being written. Fresh memory is dear: the first touch of its pages takes several
 * times as long as the copy. So the room of the last copy is kept, as large as the state itself, while its trainer lives.
 */
import type { TrainerEngine } from '../../core/ports.ts';

/** Memory for weights, m and v. Who holds it can give it to another thread, and then has it no more. */
export type Room = readonly [weights: ArrayBuffer, m: ArrayBuffer, v: ArrayBuffer];

export class CheckpointCopies {
  #kept: Room | undefined;
  /** Bytes of each part of the present trainer; 0 without one. */
  #bytes = 0;

  /** A copy of the trainer's state. A second one while the first is out has memory of its own. */
  copy({ weights, m, v }: TrainerEngine): Room {
    this.#bytes = weights.byteLength;
    const room = this.#kept?.[0].byteLength === this.#bytes ? this.#kept : freshRoom(this.#bytes);
    this.#kept = undefined;
    [weights, m, v].forEach((part, i) => new Float32Array(room[i] as ArrayBuffer).set(part));
    return room;
  }

  /** The copy is written: its room serves the next one. */
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

function freshRoom(bytes: number): Room {
  return [new ArrayBuffer(bytes), new ArrayBuffer(bytes), new ArrayBuffer(bytes)];
}
