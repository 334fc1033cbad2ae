/**
 * Gets weights from processes that have them in memory. core/wire/weights.ts says how they are asked. The answer's body
 * is read from the socket into one buffer: the parser of Node's HTTP client gives it in pieces of 64 KiB, each in
 * memory of its own, and takes three times as long.
 */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { ByteSink } from '../../../core/byte-sink.ts';
import { weightsPath } from '../../../core/wire/weights.ts';
import { messageProof } from '../../../log/objects/result-proof.ts';

export interface AskedWeights {
  readonly runId: string;
  /** Digest of the publication. */
  readonly publication: string;
  readonly secret: string;
  readonly bytes: number;
}

/** A holder that sends nothing for so long is left. It may wait itself for the one that it gets them from. */
const silentMs = 10_000;
/** A holder must be faster than this, in bytes per second, after `silentMs`. */
const slowest = 1_000_000;
const bufferBytes = 1 << 20;
const mostHeaderBytes = 4_096;
const endOfHeader = '\r\n\r\n';

/**
 * Writes all bytes of the publication to the sink, in order, and resolves with true. Each holder goes on where the one
 * before has ended; false when the last of them has not sent everything. `sink` may not keep what it gets.
 */
export async function readFromHolders(
  holders: readonly string[],
  asked: AskedWeights,
  sink: ByteSink,
): Promise<boolean> {
  let done = 0;
  for (const holder of holders) {
    const isMore = await readBody(holder, asked, done, async (piece) => {
      if (done + piece.byteLength > asked.bytes) throw new Error('more bytes than were asked for');
      await sink(piece);
      done += piece.byteLength;
    }).then(
      () => false,
      () => true, // the next one, or the store
    );
    if (done === asked.bytes) return !isMore;
  }
  return false;
}

/** Rejects when the holder refuses, is silent or slow, or ends too early. */
async function readBody(holder: string, asked: AskedWeights, firstByte: number, sink: ByteSink): Promise<void> {
  const { hostname, port, host } = new URL(holder);
  const path = weightsPath(asked.runId, asked.publication, firstByte);
  const body = new BodyReader(holder, sink);
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port),
    onread: {
      buffer: Buffer.allocUnsafe(bufferBytes),
      callback: (count, buffer) => {
        void body.take(Buffer.from(buffer.buffer, buffer.byteOffset, count), socket);
        return !body.isBusy;
      },
    },
  });
  socket.setTimeout(silentMs, () => socket.destroy(new Error(`${holder} is silent`)));
  socket.on('error', (error) => body.fail(error));
  socket.on('close', () => body.end());
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `host: ${host}`,
      `authorization: ${messageProof(asked.secret, path)}`,
      'connection: close',
      endOfHeader.slice(2),
    ].join('\r\n'),
  );
  try {
    await body.over;
  } finally {
    socket.destroy();
  }
}

class BodyReader {
  readonly over: Promise<void>;
  readonly #holder: string;
  readonly #sink: ByteSink;
  readonly #began = performance.now();
  #header: string | undefined = '';
  #left = Number.POSITIVE_INFINITY;
  #got = 0;
  #busy = false;
  #settle: { readonly done: () => void; readonly fail: (error: unknown) => void } = { done: () => {}, fail: () => {} };

  constructor(holder: string, sink: ByteSink) {
    this.#holder = holder;
    this.#sink = sink;
    this.over = new Promise((done, fail) => (this.#settle = { done, fail }));
  }

  /** Is a piece being written? Then the socket waits, because its buffer is in use. */
  get isBusy(): boolean {
    return this.#busy;
  }

  fail(error: unknown): void {
    this.#settle.fail(error);
  }

  /** The connection has closed. */
  end(): void {
    if (!this.#busy) this.#settle.fail(new Error(`${this.#holder} has ended with ${this.#left} bytes left`));
  }

  async take(bytes: Buffer, socket: Socket): Promise<void> {
    this.#busy = true;
    try {
      const body = this.#header === undefined ? bytes : this.#afterHeader(bytes);
      await this.#sink(body);
      this.#left -= body.byteLength;
      this.#got += body.byteLength;
      const ms = performance.now() - this.#began;
      if (ms > silentMs && this.#got < (slowest * ms) / 1_000) throw new Error(`${this.#holder} is too slow`);
      if (this.#left < 0) throw new Error(`${this.#holder} has sent more than it said`);
      if (this.#left === 0) return this.#settle.done();
    } catch (error) {
      return this.#settle.fail(error);
    } finally {
      this.#busy = false;
    }
    if (socket.destroyed) this.end();
    else socket.resume();
  }

  /** What of these bytes belongs to the body. Throws when the answer is no 200. */
  #afterHeader(bytes: Buffer): Buffer {
    const text = (this.#header ?? '') + bytes.toString('latin1');
    const at = text.indexOf(endOfHeader);
    if (at < 0 && text.length < mostHeaderBytes) {
      this.#header = text;
      return bytes.subarray(bytes.length);
    }
    const [status, ...lines] = text.slice(0, Math.max(at, 0)).split('\r\n');
    const length = lines.map((line) => /^content-length: *(\d+)$/i.exec(line)?.[1]).find((one) => one !== undefined);
    if (!/^HTTP\/1\.1 200 /.test(status ?? '') || length === undefined)
      throw new Error(`${this.#holder} answered ${status ?? 'nothing'}`);
    const before = (this.#header ?? '').length;
    this.#header = undefined;
    this.#left = Number(length);
    return bytes.subarray(at + endOfHeader.length - before);
  }
}
