/** Weights that other processes read while they still come into memory, from the first element on. */
import type { PolicyEngine } from '../../core/ports/policy.ts';

/** fp32 weights that a process serves. */
export interface ReadableWeights {
  /** Resolves with the number of elements, once it is known; undefined: they will not come. */
  readonly elements: () => Promise<number | undefined>;
  /** Resolves once more than `count` elements can be read, with how many; undefined: no more will come. */
  readonly beyond: (count: number) => Promise<number | undefined>;
  readonly read: (start: number, into: Float32Array) => Promise<void>;
}

/** Those of an engine that has them all. `are`: are they still in it? */
export function wholeWeights(engine: PolicyEngine, are: () => boolean): ReadableWeights {
  const { elements } = engine;
  return {
    elements: async () => elements,
    beyond: async (count) => (are() && count < elements ? elements : undefined),
    read: (start, into) => engine.read('weights', start, into),
  };
}

export class GrowingWeights implements ReadableWeights {
  #engine: PolicyEngine | undefined;
  #bytes = 0;
  #failed = false;
  #waiting: (() => void)[] = [];

  /** The engine into which they come. */
  begin(engine: PolicyEngine): void {
    this.#engine = engine;
    this.#wake();
  }

  /** So many more bytes are in the engine. */
  advance(bytes: number): void {
    this.#bytes += bytes;
    this.#wake();
  }

  complete(): void {
    this.#bytes = (this.#engine?.elements ?? 0) * Float32Array.BYTES_PER_ELEMENT;
    this.#wake();
  }

  /** They will not come, or other ones take their place. */
  fail(): void {
    this.#failed = true;
    this.#wake();
  }

  async elements(): Promise<number | undefined> {
    while (this.#engine === undefined && !this.#failed) await this.#change();
    return this.#failed ? undefined : this.#engine?.elements;
  }

  async beyond(count: number): Promise<number | undefined> {
    while (!this.#failed && this.#ready <= count) await this.#change();
    return this.#failed ? undefined : this.#ready;
  }

  async read(start: number, into: Float32Array): Promise<void> {
    if (this.#engine === undefined || this.#failed) throw new Error('these weights are not in memory any more');
    await this.#engine.read('weights', start, into);
  }

  get #ready(): number {
    return Math.floor(this.#bytes / Float32Array.BYTES_PER_ELEMENT);
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
