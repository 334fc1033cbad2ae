/** Hashes blocks one after the other on the calling thread. Engines hash theirs by themselves. */
import { createHash } from 'node:crypto';
import { createBLAKE3 } from 'hash-wasm';
import type { BlockHash } from '../../core/parameters.ts';

export interface BlockHasher {
  readonly hash: BlockHash;
  update(bytes: Uint8Array): void;
  /** Digest [32] of the bytes since the digest before. */
  digest(): Uint8Array;
}

export function sha256Hasher(): BlockHasher {
  let block = createHash('sha256');
  return {
    hash: 'sha256',
    update: (bytes) => void block.update(bytes),
    digest: () => {
      const digest = block.digest();
      block = createHash('sha256');
      return digest;
    },
  };
}

/** Two hashers share no state. */
export async function blockHasher(hash: BlockHash): Promise<BlockHasher> {
  if (hash === 'sha256') return sha256Hasher();
  const block = (await createBLAKE3()).init();
  return {
    hash,
    update: (bytes) => void block.update(bytes),
    digest: () => {
      const digest = block.digest('binary');
      block.init();
      return digest;
    },
  };
}
