/**
 * Splits a byte stream into lines. The rest of a line beyond the limit is dropped, so that garbage cannot fill the
 * memory.
 */
export class LineSplitter {
  readonly #onLine: (line: string) => void;
  readonly #limit: number;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(onLine: (line: string) => void, limit = 16 * 1024 * 1024) {
    this.#onLine = onLine;
    this.#limit = limit;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, end));
      const line = this.#size <= this.#limit ? Buffer.concat(this.#parts).toString() : '';
      this.#parts = [];
      this.#size = 0;
      from = end + 1;
      this.#onLine(line);
    }
    this.#add(chunk.subarray(from));
  }

  /** The end of the stream: text after the last line break is a line too. */
  end(): void {
    if (this.#size > 0) this.push(Buffer.from('\n'));
  }

  #add(part: Buffer): void {
    this.#size += part.length;
    if (this.#size <= this.#limit) this.#parts.push(part);
    else this.#parts = [];
  }
}
