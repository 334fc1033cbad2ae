/** Frames to and from a rank, as in engines/torch/petrel_torch/channel.py: four bytes of length, then JSON. */
import type { Duplex } from 'node:stream';

/** Raised with every change of a call's form: engines/torch/petrel_torch/serve.py has the same. */
export const protocol = 8;

/** An array in shared memory; `at` in bytes. */
export interface Place {
  readonly at: number;
  readonly dtype: 'F32' | 'BF16' | 'I32' | 'U8';
  readonly shape: readonly number[];
}

/** What a rank says first: what the bits of its results depend on. */
export interface Hello {
  readonly protocol: number;
  readonly rank: number;
  readonly pid: number;
  /** GPUs that it may use. */
  readonly gpus: number;
  readonly device: string;
  /** Bytes of the device; 0 for the machine's own memory. */
  readonly memory: number;
  readonly torch: string;
  readonly cuda: string | null;
  readonly transformers: string;
}

/** `invalid_input`: the caller's; the state is unchanged. */
export interface RankError {
  readonly kind: 'invalid_input' | 'out_of_memory' | 'internal';
  readonly message: string;
}

export type FromRank =
  | { readonly hello: Hello }
  | { readonly tick: number }
  | { readonly id: number; readonly ok: unknown }
  | { readonly id: number; readonly error: RankError };

/** The most bytes of a frame: numbers in bulk go through shared memory. */
const mostBytes = 64 << 20;

export function encodeFrame(frame: object): Buffer {
  const body = Buffer.from(JSON.stringify(frame));
  const head = Buffer.alloc(4);
  head.writeUInt32LE(body.length);
  return Buffer.concat([head, body]);
}

/** Calls `take` with each frame of the stream, in order. */
export function readFrames(stream: Duplex, take: (frame: FromRank) => void): void {
  let rest: Buffer = Buffer.alloc(0);
  stream.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      if (rest.length < 4) return;
      const length = rest.readUInt32LE();
      if (length > mostBytes) throw new Error(`a frame of ${length} bytes`);
      if (rest.length < 4 + length) return;
      const frame = JSON.parse(rest.toString('utf8', 4, 4 + length)) as FromRank;
      rest = rest.subarray(4 + length);
      take(frame);
    }
  });
}
