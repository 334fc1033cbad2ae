/**
 * The streams of a sampler that decodes one token for every live sample at a time: each caller reads the tokens of its
 * own samples.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { at } from '../../../core/at.ts';
import { PreemptedError } from '../../../core/errors.ts';
import { columnsAt } from '../../../core/token-columns.ts';
import type { DecodedTokens, GenerateRequest } from '../../../core/ports/sampler.ts';

/** A sampler that is stepped. */
export interface Stepped {
  /** Queues a request. Throws InvalidInputError for one that never fits. */
  submit(request: GenerateRequest): void | Promise<void>;
  /** Admits, prefills and decodes one token for every live sample. Empty arrays when idle. */
  step(): DecodedTokens | Promise<DecodedTokens>;
  /** Drops the sample at once and frees its slot. Unknown keys are ignored. */
  abort(key: number): void | Promise<void>;
  /** Drops every sample. */
  reset(): void | Promise<void>;
}

const paused = () => new PreemptedError('WeightsMoved', 'The weights changed while samples were in flight');

/** The tokens of one caller that it has not read yet. */
class Stream {
  readonly batches: DecodedTokens[] = [];
  /** Keys of samples that have not ended. */
  readonly keys: Set<number>;
  error: Error | undefined;
  #wake: () => void = () => {};

  constructor(keys: Iterable<number>) {
    this.keys = new Set(keys);
  }

  push(batch: DecodedTokens): void {
    this.batches.push(batch);
    batch.finish.forEach((finish, i) => finish !== 0 && this.keys.delete(at(batch.keys, i)));
    this.#wake();
  }

  fail(error: Error): void {
    this.error ??= error;
    this.#wake();
  }

  /** One of its samples has been aborted. */
  drop(key: number): void {
    this.keys.delete(key);
    this.#wake();
  }

  changed(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}

export class SteppedStreams {
  readonly #sampler: Stepped;
  /** Maps a live sample to the stream that reads it. */
  readonly #streams = new Map<number, Stream>();
  /** Requests that the sampler gets before its next step, all of them: it computes new prompts together. */
  #queue: { readonly request: GenerateRequest; readonly stream: Stream }[] = [];
  #stepping = false;

  constructor(sampler: Stepped) {
    this.#sampler = sampler;
  }

  async *generate(requests: readonly GenerateRequest[]): AsyncGenerator<DecodedTokens> {
    const stream = new Stream(requests.flatMap(({ samples }) => samples.map(({ key }) => key)));
    for (const key of stream.keys) this.#streams.set(key, stream);
    try {
      this.#queue.push(...requests.map((request) => ({ request, stream })));
      void this.#stepAll();
      for (;;) {
        const batch = stream.batches.shift();
        if (batch !== undefined) yield batch;
        else if (stream.error !== undefined) throw stream.error;
        else if (stream.keys.size === 0) return;
        else await stream.changed();
      }
    } finally {
      for (const key of stream.keys) await this.abort(key);
    }
  }

  async abort(key: number): Promise<void> {
    const stream = this.#streams.get(key);
    this.#streams.delete(key);
    await this.#sampler.abort(key);
    stream?.drop(key);
  }

  /** Drops every sample: its reader gets the error. */
  async end(error: Error = paused()): Promise<void> {
    const streams = new Set(this.#streams.values());
    this.#streams.clear();
    this.#queue = [];
    for (const stream of streams) {
      stream.keys.clear();
      stream.fail(error);
    }
    await this.#sampler.reset();
  }

  /** Decodes until no sample is live. Yields after every step, so that messages are handled and tokens are read. */
  async #stepAll(): Promise<void> {
    if (this.#stepping) return;
    this.#stepping = true;
    while (this.#streams.size > 0) {
      try {
        await this.#submitAll();
        this.#give(await this.#sampler.step());
      } catch (error) {
        await this.end(error instanceof Error ? error : new Error(String(error))).catch(() => {}); // it may be gone
      }
      await nextTurn();
    }
    this.#stepping = false;
  }

  /** A request that is refused fails its stream alone. */
  async #submitAll(): Promise<void> {
    for (const { request, stream } of this.#queue.splice(0)) {
      const samples = request.samples.filter(({ key }) => this.#streams.get(key) === stream); // others were aborted
      if (samples.length === 0 || stream.error !== undefined) continue;
      try {
        await this.#sampler.submit({ ...request, samples });
      } catch (error) {
        stream.fail(error instanceof Error ? error : new Error(String(error)));
        for (const key of [...stream.keys]) await this.abort(key);
      }
    }
  }

  #give(decoded: DecodedTokens): void {
    const places = new Map<Stream, number[]>();
    decoded.keys.forEach((key, i) => {
      const stream = this.#streams.get(key);
      if (stream === undefined) return;
      const known = places.get(stream);
      if (known === undefined) places.set(stream, [i]);
      else known.push(i);
      if (at(decoded.finish, i) !== 0) this.#streams.delete(key);
    });
    for (const [stream, own] of places)
      stream.push(own.length === decoded.keys.length ? decoded : partOf(decoded, own));
  }
}

function partOf(decoded: DecodedTokens, places: number[]): DecodedTokens {
  const { keys, tokens, logProbs, samplingLogProbs, columns, finish } = decoded;
  return {
    keys: Int32Array.from(places, (i) => at(keys, i)),
    tokens: Int32Array.from(places, (i) => at(tokens, i)),
    logProbs: Float32Array.from(places, (i) => at(logProbs, i)),
    ...(samplingLogProbs && { samplingLogProbs: Float32Array.from(places, (i) => at(samplingLogProbs, i)) }),
    ...(columns && { columns: columnsAt(columns, Int32Array.from(places)) }),
    finish: Uint8Array.from(places, (i) => at(finish, i)),
  };
}
