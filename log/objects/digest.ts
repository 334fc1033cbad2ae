/** SHA-256 of bytes, of streams, and digests of large states as a tree over fixed blocks. */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { canonicalJson } from '../../core/canonical.ts';
import type { Digest } from '../../core/ids.ts';
import type { BlockHash } from '../../core/parameters.ts';
import { mapComponents } from '../../core/records/components.ts';
import type { Components } from '../../core/records/components.ts';
import { stateParts } from '../../core/records/state-parts.ts';
import { sha256Hasher } from './block-hasher.ts';
import type { BlockHasher } from './block-hasher.ts';

/** Leaves of the tree: 8 MiB of the canonical layout each. */
export const blockBytes = 8 * 1024 * 1024;

export function sha256(bytes: Uint8Array | string): Digest {
  return createHash('sha256').update(bytes).digest('hex');
}

/** SHA-256 of bytes in pieces; yields to the event loop after every few MiB. */
export async function digestOfPieces(pieces: readonly Uint8Array[]): Promise<Digest> {
  const hash = createHash('sha256');
  for (const piece of pieces) {
    for (let at = 0; at < piece.byteLength; at += blockBytes) {
      hash.update(piece.subarray(at, at + blockBytes));
      if (piece.byteLength > blockBytes) await setImmediate();
    }
  }
  return hash.digest('hex');
}

/** Passes a stream through. Throws `error` at the end when its bytes have another digest. */
export async function* checked(
  stream: AsyncIterable<Uint8Array>,
  digest: Digest,
  error: () => Error,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  for await (const chunk of stream) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest('hex') !== digest) throw error();
}

/** Digest of a value by its canonical JSON. */
export function digestOf(value: unknown): Digest {
  return sha256(canonicalJson(value));
}

/** Root of a flat fp32 array: SHA-256 over its byte length and the digests of its 8 MiB blocks. */
export function treeDigest(flat: Float32Array, hasher: BlockHasher = sha256Hasher()): Digest {
  const tree = new TreeDigest(flat.byteLength, hasher);
  const values = blockBytes / Float32Array.BYTES_PER_ELEMENT; // as bytes, a large array would not fit into a Uint8Array
  for (let at = 0; at < flat.length; at += values) tree.add(flat.subarray(at, at + values));
  return tree.root();
}

/** Computes the same root piece by piece, in order, for arrays that are not in memory at once. */
export class TreeDigest {
  readonly #root: Hash;
  readonly #bytes: number;
  readonly #block: BlockHasher;
  #inBlock = 0;
  #seen = 0;

  /** The hasher is this tree's own until `root` is called. */
  constructor(bytes: number, hasher: BlockHasher) {
    this.#bytes = bytes;
    this.#block = hasher;
    this.#root = createHash('sha256').update(treeHeader(bytes, hasher.hash));
  }

  /** Adds values, or their bytes cut at any place. */
  add(piece: Float32Array | Uint8Array): void {
    const bytes = new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength);
    for (let start = 0; start < bytes.byteLength; ) {
      const end = Math.min(start + blockBytes - this.#inBlock, bytes.byteLength);
      this.#block.update(bytes.subarray(start, end));
      this.#inBlock += end - start;
      start = end;
      if (this.#inBlock === blockBytes) this.#endBlock();
    }
    this.#seen += bytes.byteLength;
  }

  /** Throws RangeError when the number of bytes is not the one given to the constructor. */
  root(): Digest {
    if (this.#seen !== this.#bytes) throw new RangeError(`got ${this.#seen} bytes, expected ${this.#bytes}`);
    if (this.#inBlock > 0) this.#endBlock();
    return this.#root.digest('hex');
  }

  #endBlock(): void {
    this.#root.update(this.#block.digest());
    this.#inBlock = 0;
  }
}

/** Root of an array of so many bytes from the digests of its blocks, one after the other. */
export function treeRoot(bytes: number, leaves: Uint8Array, hash: BlockHash): Digest {
  return createHash('sha256').update(treeHeader(bytes, hash)).update(leaves).digest('hex');
}

/** Format 1 has blocks by SHA-256, format 2 by BLAKE3. */
const treeHeader = (bytes: number, hash: BlockHash): string => `petrel tree ${hash === 'sha256' ? 1 : 2} ${bytes}\n`;

export interface StateDigests {
  readonly stateDigest: Digest;
  readonly weightsDigest: Digest;
}

/** Root of each part of a state, by its name. */
export type PartRoots = Readonly<Record<string, Digest>>;

/** Digest of a run's state: that of its only component, or of all of them by name. */
export function runStateOf(components: Components<Pick<StateDigests, 'stateDigest'>>): Digest {
  const [only, ...others] = Object.values(components);
  if (only !== undefined && others.length === 0) return only.stateDigest;
  return digestOf({ format: 2, components: mapComponents(components, ({ stateDigest }) => stateDigest) });
}

/**
 * Digest of a component's state from the roots of its parts, the first of which samplers load. A state of all weights
 * and their moments has the digest that it had when every state had these parts.
 */
export function stateDigestsOf(roots: PartRoots, steps: number): StateDigests {
  const names = Object.keys(roots);
  const named = names.join() === stateParts.join() ? { format: 1, ...roots } : { format: 3, parts: roots };
  return { stateDigest: digestOf({ ...named, steps }), weightsDigest: roots[names[0] ?? ''] ?? '' };
}

/** What an update has made of a component whose engine does not repeat its bits. */
export interface Lineage {
  /** Name of the component's state before. */
  readonly parent: Digest;
  /** Digest of the batch's record. */
  readonly batch: Digest;
  readonly component: string;
  /** Id of the numeric profile, and its engine. */
  readonly profile: string;
  readonly engine: string;
  /** The process, and the state in it, that the batch was applied to. */
  readonly incarnation: string;
}

/**
 * Name of a state by where it comes from: for engines whose bits do not repeat, so that hashing it would tell nothing.
 */
export const lineageDigest = (lineage: Lineage): Digest => digestOf({ format: 3, lineage });
