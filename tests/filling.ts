/** Receives a tensor of a stream into an array. */
import type { ByteSink } from '../core/byte-sink.ts';

/** A sink that fills `target`. */
export function filling(target: Float32Array): ByteSink {
  const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
  let at = 0;
  return (piece) => {
    bytes.set(piece, at);
    at += piece.byteLength;
  };
}
