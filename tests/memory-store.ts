/** A store in memory, for tests of many interleavings. Its listings can lag, as those of an object store may. */
import type { Store } from '../core/ports/store.ts';

export class MemoryStore implements Store {
  readonly url = 'memory:';
  readonly place = 'memory:';
  readonly objects = new Map<string, Uint8Array>();
  /** The keys that listings show; undefined: all. */
  #listed: readonly string[] | undefined;
  /** Called before every change. When it throws, the writer dies at this point. */
  beforeChange: (key: string) => void = () => {};

  /** Listings do not change until `refresh`. */
  holdListings(): void {
    this.#listed ??= [...this.objects.keys()];
  }

  refresh(): void {
    this.#listed = undefined;
  }

  async create(key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
    this.beforeChange(key);
    if (this.objects.has(key)) return 'exists';
    this.objects.set(key, bytes.slice());
    return 'created';
  }

  async put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    this.beforeChange(key);
    const pieces: Uint8Array[] = [];
    if (bytes instanceof Uint8Array) pieces.push(bytes);
    else for await (const piece of bytes) pieces.push(piece);
    this.objects.set(key, new Uint8Array(Buffer.concat(pieces)));
  }

  async get(key: string, range?: readonly [number, number]): Promise<Uint8Array | undefined> {
    return range === undefined ? this.objects.get(key) : this.objects.get(key)?.subarray(...range);
  }

  async stream(key: string): Promise<AsyncIterable<Uint8Array> | undefined> {
    const bytes = this.objects.get(key);
    return (
      bytes &&
      (async function* () {
        yield bytes;
      })()
    );
  }

  async head(key: string): Promise<number | undefined> {
    return this.objects.get(key)?.byteLength;
  }

  async settle(): Promise<void> {}

  async list(prefix: string): Promise<string[]> {
    return [...(this.#listed ?? this.objects.keys())].filter((key) => key.startsWith(prefix)).sort();
  }

  async children(prefix: string): Promise<string[]> {
    const names = (await this.list(prefix))
      .map((key) => key.slice(prefix.length))
      .map((rest) => (rest.includes('/') ? rest.slice(0, rest.indexOf('/') + 1) : rest));
    return [...new Set(names)].sort();
  }

  async remove(key: string, only: (key: string) => boolean = () => true): Promise<void> {
    this.beforeChange(key);
    if (!key.endsWith('/')) this.objects.delete(key);
    else for (const one of [...this.objects.keys()]) if (one.startsWith(key) && only(one)) this.objects.delete(one);
  }

  localPath(): undefined {
    return undefined;
  }
}
