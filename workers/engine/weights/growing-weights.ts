/** Published weights that other processes read while they still come into memory, from the first byte on. */
import type { PolicyEngine } from '../../../core/ports/policy.ts';
import type { WeightsFormat } from '../../../core/parameters.ts';
import { publishedBytes } from '../../../core/records/publications.ts';

/** A publication that a process serves: core/records/publications.ts. */
export interface ReadableWeights {
  /** Resolves with the number of bytes, once it is known; undefined: they will not come. */
  readonly bytes: () => Promise<number | undefined>;
  /** Resolves once more than `count` bytes can be read, with how many; undefined: no more will come. */
  readonly beyond: (count: number) => Promise<number | undefined>;
  readonly read: (start: number, into: Uint8Array) => Promise<void>;
}

/** What can give published weights back: a policy, or a sampler that has the ability. */
export type WeightsHolder = Pick<PolicyEngine, 'parameters'> & Partial<Pick<PolicyEngine, 'readPublished'>>;

/** The weights of an engine that has them all. `are`: are they still in it? */
export function wholeWeights(engine: PolicyEngine, format: WeightsFormat, are: () => boolean): ReadableWeights {
  const bytes = publishedBytes(engine.parameters, format);
  return {
    bytes: async () => bytes,
    beyond: async (count) => (are() && count < bytes ? bytes : undefined),
    read: (start, into) => engine.readPublished(format, start, into),
  };
}

export class GrowingWeights implements ReadableWeights {
  readonly #format: WeightsFormat;
  #engine: WeightsHolder | undefined;
  #bytes = 0;
  #failed = false;
  #waiting: (() => void)[] = [];

  constructor(format: WeightsFormat) {
    this.#format = format;
  }

  /** The engine into which they come. */
  begin(engine: WeightsHolder): void {
    this.#engine = engine;
    this.#wake();
  }

  /** Notes that this many more bytes are in the engine. */
  advance(bytes: number): void {
    this.#bytes += bytes;
    this.#wake();
  }

  complete(): void {
    this.#bytes = this.#engine === undefined ? 0 : publishedBytes(this.#engine.parameters, this.#format);
    this.#wake();
  }

  /** Fails the readers: the weights will not come, or other ones take their place. */
  fail(): void {
    this.#failed = true;
    this.#wake();
  }

  async bytes(): Promise<number | undefined> {
    while (this.#engine === undefined && !this.#failed) await this.#change();
    return this.#failed || this.#engine?.readPublished === undefined
      ? undefined
      : publishedBytes(this.#engine.parameters, this.#format);
  }

  async beyond(count: number): Promise<number | undefined> {
    while (!this.#failed && this.#ready <= count) await this.#change();
    return this.#failed ? undefined : this.#ready;
  }

  async read(start: number, into: Uint8Array): Promise<void> {
    if (this.#engine?.readPublished === undefined || this.#failed)
      throw new Error('these weights are not in memory any more');
    await this.#engine.readPublished(this.#format, start, into);
  }

  /**
   * Bytes that are ready, without half of a bf16 value: what it is with a byte of the value before would be rounded.
   * fp32 values are not.
   */
  get #ready(): number {
    return this.#bytes - (this.#bytes % 2);
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
