/** SHA-256 of bytes, of streams, and of large states as a tree over fixed blocks. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/canonical.ts';
import type { Digest } from '../../core/ids.ts';

/** Leaves of the tree: 8 MiB of the canonical layout each. */
export const blockBytes = 8 * 1024 * 1024;

export function sha256(bytes: Uint8Array | string): Digest {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Digest of a value by its canonical JSON. */
export function digestOf(value: unknown): Digest {
  return sha256(canonicalJson(value));
}

/**
 * Root of a flat fp32 array: SHA-256 over the byte length and the digests of its 8 MiB blocks.
 * `onBlock` is called after each block, so that a long hash shows progress.
 */
export function treeDigest(flat: Float32Array, onBlock?: () => void): Digest {
  const bytes = new Uint8Array(flat.buffer, flat.byteOffset, flat.byteLength);
  const root = createHash('sha256').update(`petrel tree 1 ${bytes.byteLength}\n`);
  for (let start = 0; start < bytes.byteLength; start += blockBytes) {
    root.update(createHash('sha256').update(bytes.subarray(start, Math.min(start + blockBytes, bytes.byteLength))).digest());
    onBlock?.();
  }
  return root.digest('hex');
}

/** The parts of a trainer's state that decide its digest. */
export interface StateParts {
  readonly weights: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  readonly steps: number;
}

export interface StateDigests {
  readonly stateDigest: Digest;
  readonly weightsDigest: Digest;
}

export function stateDigests(state: StateParts, onBlock?: () => void): StateDigests {
  const weightsDigest = treeDigest(state.weights, onBlock);
  const stateDigest = digestOf({
    format: 1,
    weights: weightsDigest,
    m: treeDigest(state.m, onBlock),
    v: treeDigest(state.v, onBlock),
    steps: state.steps,
  });
  return { stateDigest, weightsDigest };
}
