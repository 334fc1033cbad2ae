/** Blocks of rows: about 8 MiB of lines each, cut by the rows alone. */
import { at } from '../../core/at.ts';

/** A block is closed before a row that would make it larger. A row that is larger has a block of its own. */
export const usualBlockBytes = 8 * 1024 * 1024;

const newline = 0x0a;

/** Called with each block as it is full. */
export type PutBlock = (bytes: Uint8Array, rows: number) => Promise<void>;

/** Collects lines, and hands blocks over one after the other: one block is in memory. */
export class BlockWriter {
  readonly #put: PutBlock;
  readonly #blockBytes: number;
  #buffer = Buffer.alloc(0);
  #used = 0;
  #rows = 0;
  /** Bytes in all blocks so far. */
  written = 0;

  constructor(put: PutBlock, blockBytes = usualBlockBytes) {
    this.#put = put;
    this.#blockBytes = blockBytes;
  }

  /** A promise only where a block must be handed over first: a million rows would wait a million times. */
  add(line: string): Promise<void> | undefined {
    const bytes = Buffer.byteLength(line) + 1;
    if (this.#rows > 0 && this.#used + bytes > this.#blockBytes) return this.end().then(() => this.#write(line, bytes));
    this.#write(line, bytes);
    return undefined;
  }

  #write(line: string, bytes: number): void {
    if (this.#used + bytes > this.#buffer.length) this.#grow(this.#used + bytes);
    this.#buffer.write(line, this.#used);
    this.#buffer[this.#used + bytes - 1] = newline;
    this.#used += bytes;
    this.#rows++;
    this.written += bytes;
  }

  /** Hands over what is left. */
  async end(): Promise<void> {
    if (this.#rows === 0) return;
    const [block, rows] = [this.#buffer.subarray(0, this.#used), this.#rows];
    [this.#buffer, this.#used, this.#rows] = [Buffer.alloc(0), 0, 0];
    await this.#put(block, rows);
  }

  /** Doubles, so that a small dataset takes little memory. */
  #grow(needed: number): void {
    const size = Math.max(needed, Math.min(this.#blockBytes, Math.max(64 * 1024, 2 * this.#buffer.length)));
    const grown = Buffer.allocUnsafeSlow(size);
    this.#buffer.copy(grown, 0, 0, this.#used);
    this.#buffer = grown;
  }
}

/** A block in memory: its bytes, and where each line ends. */
export class Block {
  readonly #bytes: Buffer;
  readonly #ends: Uint32Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#ends = endsOf(this.#bytes);
  }

  get rows(): number {
    return this.#ends.length;
  }

  get byteLength(): number {
    return this.#bytes.byteLength + this.#ends.byteLength;
  }

  /** Row `row` of this block, from 0. Throws RangeError outside it. */
  line(row: number): string {
    const end = this.#ends[row];
    if (end === undefined) throw new RangeError(`row ${row} of ${this.rows}`);
    return this.#bytes.toString('utf8', row === 0 ? 0 : at(this.#ends, row - 1) + 1, end);
  }
}

function endsOf(bytes: Buffer): Uint32Array {
  const ends: number[] = [];
  for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, end + 1)) ends.push(end);
  return Uint32Array.from(ends);
}

/** The last used blocks of all datasets of a process, bounded in bytes. The newest one stays, however large it is. */
export class BlockCache {
  readonly #maxBytes: number;
  readonly #blocks = new Map<string, Promise<Block>>();
  readonly #sizes = new Map<string, number>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `name`: of the block in this process. Loads it once, however many ask at the same time. */
  get(name: string, load: () => Promise<Uint8Array>): Promise<Block> {
    const known = this.#blocks.get(name) ?? this.#load(name, load);
    this.#blocks.delete(name);
    this.#blocks.set(name, known);
    return known;
  }

  #load(name: string, load: () => Promise<Uint8Array>): Promise<Block> {
    const loading = load().then((bytes) => {
      const block = new Block(bytes);
      this.#sizes.set(name, block.byteLength);
      this.#bytes += block.byteLength;
      this.#evict(name);
      return block;
    });
    loading.catch(() => this.#blocks.delete(name));
    return loading;
  }

  #evict(newest: string): void {
    for (const name of this.#blocks.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      const size = this.#sizes.get(name);
      if (name === newest || size === undefined) continue; // being loaded: it counts when it is there
      this.#blocks.delete(name);
      this.#sizes.delete(name);
      this.#bytes -= size;
    }
  }
}
