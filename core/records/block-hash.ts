/** The hash of the blocks in the digests of a state, as records name it. */
import type { BlockHash } from '../parameters.ts';

export interface NamesBlockHash {
  /** Absent: SHA-256, the only one of earlier runs. A run keeps the hash that it began with, and so do its forks. */
  readonly blockHash?: 'blake3' | undefined;
}

/** The block hash of new runs: BLAKE3 is several times as fast on the vectors of every processor. */
export const newBlockHash: BlockHash = 'blake3';

export const blockHashOf = ({ blockHash }: NamesBlockHash): BlockHash => blockHash ?? 'sha256';

export const namedBlockHash = (hash: BlockHash): NamesBlockHash => (hash === 'sha256' ? {} : { blockHash: hash });
