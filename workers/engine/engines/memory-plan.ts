/**
 * One plan of memory for all models of a process: policy, reference, the model that only samples, and their caches. A
 * model that does not fit is refused before anything is allocated; a cache takes what is left.
 */
import { UnfitError } from '../../../core/errors.ts';
import { showBytes } from '../../../core/quantities.ts';

export class MemoryPlan {
  readonly #limit: number;
  readonly #held = new Map<object, { readonly model: number; cache: number }>();

  /** `limit`: bytes of the machine, or of this process's share of it. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Makes a model of these bytes, which counts until `release`. Throws UnfitError `TooLittleMemory` when it does not
   * fit beside the others.
   */
  async open<Model extends object>(bytes: number, make: () => Promise<Model>): Promise<Model> {
    const held = this.#sum();
    if (held + bytes > this.#limit) {
      const others = held > 0 ? `, of which ${showBytes(held)} are in use` : '';
      throw new UnfitError(
        'TooLittleMemory',
        `the model needs ${showBytes(bytes)} of memory; this worker has ${showBytes(this.#limit)}${others}`,
        { hint: 'start a worker on a machine with more memory, or run fewer models on this one' },
      );
    }
    const place = {};
    this.#held.set(place, { model: bytes, cache: 0 }); // counts while it is made
    try {
      const model = await make();
      this.#held.set(model, { model: bytes, cache: 0 });
      return model;
    } finally {
      this.#held.delete(place);
    }
  }

  /**
   * The bytes that this model's cache may have instead of its present one, at most this share of the limit. 0 for a
   * model that has been released.
   */
  cacheOf(model: object, wanted: number, share: number): number {
    const held = this.#held.get(model);
    if (held === undefined) return 0;
    held.cache = 0;
    held.cache = Math.max(0, Math.min(wanted, this.#limit * share, this.#limit - this.#sum()));
    return held.cache;
  }

  release(model: object): void {
    this.#held.delete(model);
  }

  #sum(): number {
    let sum = 0;
    for (const { model, cache } of this.#held.values()) sum += model + cache;
    return sum;
  }
}
