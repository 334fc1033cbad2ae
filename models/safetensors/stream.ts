/** Reads a file from a stream: each byte goes to the sink of its tensor, and only the header is buffered. */
import type { ByteSink } from '../../core/byte-sink.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { headerLength, parseHeader } from './header.ts';
import type { Header, TensorEntry } from './header.ts';

/** Values passed on at a time: 4 MiB. */
const pieceValues = 1 << 20;

/** A sink for `count` values, which `take` gets in pieces in one buffer: element `start` of them, and those from it. */
export function floats(count: number, take: (start: number, values: Float32Array) => Promise<void>): ByteSink {
  const values = new Float32Array(Math.min(count, pieceValues));
  const bytes = new Uint8Array(values.buffer);
  let [start, filled] = [0, 0];
  return async (piece) => {
    for (let at = 0; at < piece.byteLength; ) {
      const wanted = Math.min(bytes.length, 4 * (count - start));
      const some = piece.subarray(at, at + wanted - filled);
      bytes.set(some, filled);
      at += some.byteLength;
      filled += some.byteLength;
      if (filled < wanted) continue;
      await take(start, values.subarray(0, wanted / 4));
      start += wanted / 4;
      filled = 0;
    }
  };
}

/**
 * Passes each tensor of a file to the sink that `sinkOf` returns, in the order of the data. Throws InvalidInputError
 * for anything but a complete, valid file of `fileBytes` bytes.
 */
export async function readSafetensorsStream(
  chunks: AsyncIterable<Uint8Array>,
  fileBytes: number,
  where: string,
  sinkOf: (tensor: TensorEntry) => ByteSink,
): Promise<void> {
  const reader = new Reader(fileBytes, where, sinkOf);
  for await (const chunk of chunks) await reader.take(chunk);
  reader.end();
}

class Reader {
  readonly #fileBytes: number;
  readonly #where: string;
  readonly #sinkOf: (tensor: TensorEntry) => ByteSink;
  /** Bytes received before the header was complete. */
  #early = new Uint8Array();
  #header: Header | undefined;
  /** Bytes of data passed on, and the next tensor. */
  #given = 0;
  #next = 0;
  #sink: ByteSink | undefined;

  constructor(fileBytes: number, where: string, sinkOf: (tensor: TensorEntry) => ByteSink) {
    this.#fileBytes = fileBytes;
    this.#where = where;
    this.#sinkOf = sinkOf;
  }

  async take(chunk: Uint8Array): Promise<void> {
    if (this.#header !== undefined) return this.#give(chunk);
    const early = this.#early.byteLength === 0 ? chunk : Buffer.concat([this.#early, chunk]);
    const length = early.byteLength < 8 ? undefined : headerLength(early.subarray(0, 8), this.#fileBytes, this.#where);
    if (length === undefined || early.byteLength < 8 + length) {
      this.#early = early.slice();
      return;
    }
    this.#header = parseHeader(early.subarray(8, 8 + length), this.#fileBytes - 8 - length, this.#where);
    this.#early = new Uint8Array();
    await this.#give(early.subarray(8 + length));
  }

  end(): void {
    const size = (this.#header?.dataStart ?? this.#early.byteLength) + this.#given;
    if (this.#header === undefined || size !== this.#fileBytes)
      throw this.#damaged(`got ${size} bytes, expected ${this.#fileBytes}`);
  }

  async #give(data: Uint8Array): Promise<void> {
    const tensors = this.#header?.tensors ?? [];
    for (let at = 0; at < data.byteLength; ) {
      const tensor = tensors[this.#next];
      if (tensor === undefined) throw this.#damaged('there are bytes after its last tensor');
      this.#sink ??= this.#sinkOf(tensor);
      const piece = data.subarray(at, at + tensor.end - this.#given);
      await this.#sink(piece);
      at += piece.byteLength;
      this.#given += piece.byteLength;
      if (this.#given < tensor.end) continue;
      this.#sink = undefined;
      this.#next += 1;
    }
  }

  #damaged(reason: string): InvalidInputError {
    return new InvalidInputError(`${this.#where}: not a valid safetensors file: ${reason}`, { where: this.#where });
  }
}
