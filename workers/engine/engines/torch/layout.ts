/** Places in shared memory for the arrays of one call. */
import type { Place } from './frames.ts';

const bytesOf = { F32: 4, BF16: 2, I32: 4, U8: 1 } as const;
/** Arrays begin at a cache line. */
const alignment = 64;

export class Layout {
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  place(dtype: Place['dtype'], ...shape: number[]): Place {
    const at = this.#bytes;
    const bytes = shape.reduce((product, size) => product * size, bytesOf[dtype]);
    this.#bytes = Math.ceil((at + bytes) / alignment) * alignment;
    return { at, dtype, shape };
  }
}
