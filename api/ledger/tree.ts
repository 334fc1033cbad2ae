/** The digest of a large array as a tree: core/records/FORMAT.md, "Digests of a state". */
import { createHash } from 'node:crypto';
import { createBLAKE3 } from 'hash-wasm';

/** The name of the hash in records. Absent there: SHA-256. */
export type BlockHash = 'blake3';

interface BlockHasher {
  /** Format of the tree: 1 with blocks by SHA-256, 2 by BLAKE3. */
  readonly format: 1 | 2;
  begin(): void;
  update(bytes: Uint8Array): void;
  digest(): Uint8Array;
}

export async function blockHasher(hash: BlockHash | undefined): Promise<BlockHasher> {
  if (hash === 'blake3') {
    const block = await createBLAKE3();
    return {
      format: 2,
      begin: () => void block.init(),
      update: (bytes) => void block.update(bytes),
      digest: () => block.digest('binary'),
    };
  }
  let block = createHash('sha256');
  return {
    format: 1,
    begin: () => void (block = createHash('sha256')),
    update: (bytes) => void block.update(bytes),
    digest: () => block.digest(),
  };
}

const blockBytes = 8 * 1024 * 1024;

/** SHA-256 over the length and the digests of blocks of 8 MiB. */
export class Tree {
  readonly #bytes: number;
  readonly #block: BlockHasher;
  readonly #root;
  #seen = 0;

  constructor(bytes: number, block: BlockHasher) {
    this.#bytes = bytes;
    this.#block = block;
    this.#root = createHash('sha256').update(`petrel tree ${block.format} ${bytes}\n`);
    block.begin();
  }

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.byteLength; ) {
      const room = blockBytes - (this.#seen % blockBytes);
      const piece = bytes.subarray(at, at + room);
      this.#block.update(piece);
      this.#seen += piece.byteLength;
      at += piece.byteLength;
      if (this.#seen % blockBytes === 0) this.#close();
    }
  }

  get complete(): boolean {
    return this.#seen === this.#bytes;
  }

  root(): string {
    if (this.#seen % blockBytes !== 0) this.#close();
    return this.#root.digest('hex');
  }

  #close(): void {
    this.#root.update(this.#block.digest());
    this.#block.begin();
  }
}
