/** The samples that a server makes, each by a request of its own: each caller reads the tokens of its own samples. */
import { PreemptedError } from '../../../../core/errors.ts';
import type { DecodedTokens } from '../../../../core/ports/sampler.ts';

/** Makes one sample. Its tokens go to `give`; the request must end when `signal` is aborted. */
export type MakeSample = (give: (tokens: DecodedTokens) => void, signal: AbortSignal) => Promise<void>;

const paused = () => new PreemptedError('WeightsMoved', 'The weights changed while samples were in flight');

/** What one caller reads. */
class Reader {
  readonly batches: DecodedTokens[] = [];
  /** Samples that have not ended. */
  open: number;
  error: Error | undefined;
  #wake: () => void = () => {};

  constructor(open: number) {
    this.open = open;
  }

  push(batch: DecodedTokens): void {
    this.batches.push(batch);
    this.#wake();
  }

  ended(): void {
    this.open -= 1;
    this.#wake();
  }

  fail(error: Error): void {
    this.error ??= error;
    this.#wake();
  }

  changed(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}

interface Sample {
  readonly key: number;
  readonly make: MakeSample;
  readonly reader: Reader;
  readonly ending: AbortController;
}

export class SampleStreams {
  readonly #live = new Map<number, Sample>();
  readonly #waiting: Sample[] = [];
  readonly #failed: (error: Error) => void;
  #running = 0;
  /** Samples that are asked for at a time. */
  #places = 1;

  /** `failed`: called for a sample that could not be made. */
  constructor(failed: (error: Error) => void) {
    this.#failed = failed;
  }

  set places(count: number) {
    this.#places = count;
    this.#startSome();
  }

  async *generate(samples: ReadonlyMap<number, MakeSample>): AsyncGenerator<DecodedTokens> {
    const reader = new Reader(samples.size);
    const own = [...samples].map(([key, make]) => ({ key, make, reader, ending: new AbortController() }));
    for (const sample of own) this.#live.set(sample.key, sample);
    this.#waiting.push(...own);
    this.#startSome();
    try {
      for (;;) {
        const batch = reader.batches.shift();
        if (batch !== undefined) yield batch;
        else if (reader.error !== undefined) throw reader.error;
        else if (reader.open === 0) return;
        else await reader.changed();
      }
    } finally {
      for (const sample of own) this.#end(sample);
    }
  }

  abort(key: number): void {
    const sample = this.#live.get(key);
    if (sample !== undefined) this.#end(sample);
  }

  /** Drops every sample: its reader gets the error. */
  endAll(error: Error = paused()): void {
    for (const sample of [...this.#live.values()]) {
      sample.reader.fail(error);
      this.#end(sample);
    }
  }

  #end(sample: Sample): void {
    if (this.#live.get(sample.key) !== sample) return;
    this.#live.delete(sample.key);
    sample.ending.abort();
    sample.reader.ended();
  }

  #startSome(): void {
    while (this.#running < this.#places) {
      const sample = this.#waiting.shift();
      if (sample === undefined) return;
      if (!sample.ending.signal.aborted) void this.#run(sample);
    }
  }

  async #run(sample: Sample): Promise<void> {
    const { make, reader, ending } = sample;
    this.#running += 1;
    try {
      await make((tokens) => !ending.signal.aborted && reader.push(tokens), ending.signal);
    } catch (error) {
      if (!ending.signal.aborted) {
        const failure = error instanceof Error ? error : new Error(String(error));
        reader.fail(failure);
        this.#failed(failure);
      }
    }
    this.#running -= 1;
    this.#end(sample);
    this.#startSome();
  }
}
