/** The pages of a column chunk, read from the file one after the other through a small window. */
import type { FileHandle } from 'node:fs/promises';
import type { ColumnMetaData, PageHeader } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';

/** Bytes read ahead. A page is about so large as writers make them; a larger one is read whole. */
const windowBytes = 1024 * 1024;
/** Bytes that a header surely fits into, unless it holds long statistics. */
const headerBytes = 16 * 1024;

/** A page as it lies in the file. */
export interface RawPage {
  readonly header: PageHeader;
  readonly compressed: Uint8Array<ArrayBuffer>;
}

export class PageSource {
  readonly #file: FileHandle;
  readonly #end: number;
  #position: number;
  #window = new Uint8Array(0);
  #windowStart = 0;

  constructor(file: FileHandle, column: ColumnMetaData) {
    this.#file = file;
    const start = column.dictionary_page_offset || column.data_page_offset;
    this.#position = Number(start);
    this.#end = Number(start + column.total_compressed_size);
  }

  /** The next page, or undefined after the last one. Throws for bytes that are no page. */
  async next(): Promise<RawPage | undefined> {
    if (this.#position >= this.#end - 1) return undefined; // writers may leave a byte behind the last page
    const header = await this.#header();
    const compressed = await this.#bytes(header.compressed_page_size);
    if (compressed.length < header.compressed_page_size) throw new Error('a page goes on after the end of its column');
    this.#position += compressed.length;
    return { header, compressed };
  }

  async #header(): Promise<PageHeader> {
    for (let size = headerBytes; ; size *= 16) {
      const bytes = await this.#bytes(size);
      const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
      try {
        const header = parquetHeader(reader);
        if (!(header.compressed_page_size >= 0)) throw new Error('a page header has no size');
        this.#position += reader.offset;
        return header;
      } catch (error) {
        const mayBeCut = error instanceof RangeError && this.#position + size < this.#end;
        if (!mayBeCut) throw error;
      }
    }
  }

  /** Bytes from here on, fewer at the end of the column. */
  async #bytes(count: number): Promise<Uint8Array<ArrayBuffer>> {
    const length = Math.min(count, this.#end - this.#position);
    if (this.#position + length > this.#windowStart + this.#window.length)
      await this.#fill(Math.min(Math.max(length, windowBytes), this.#end - this.#position));
    const from = this.#position - this.#windowStart;
    return this.#window.subarray(from, from + length);
  }

  async #fill(length: number): Promise<void> {
    const bytes = new Uint8Array(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.#file.read(bytes, filled, length - filled, this.#position + filled);
      if (bytesRead === 0) throw new Error(`the file ends at byte ${this.#position + filled}`);
      filled += bytesRead;
    }
    [this.#window, this.#windowStart] = [bytes, this.#position];
  }
}
