/** A store in memory that counts the requests which the same calls would send to an object store. */
import type { Store } from '../../core/ports/store.ts';

/** Maximum number of keys that one listing request of S3 returns. */
const pageSize = 1000;

export class CountedObjects implements Store {
  readonly url = 'memory:';
  readonly place = 'memory:';
  readonly objects: Map<string, Uint8Array>;
  #requests: string[] = [];

  constructor(objects: Map<string, Uint8Array>) {
    this.objects = objects;
  }

  /** Requests since the last call, as `head runs/…`. A listing has one entry per page. */
  requests(): readonly string[] {
    const seen = this.#requests;
    this.#requests = [];
    return seen;
  }

  async create(key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
    this.#note('create', key);
    if (this.objects.has(key)) return 'exists';
    this.objects.set(key, bytes.slice());
    return 'created';
  }

  async put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    this.#note('put', key);
    const pieces: Uint8Array[] = [];
    if (bytes instanceof Uint8Array) pieces.push(bytes);
    else for await (const piece of bytes) pieces.push(piece);
    this.objects.set(key, new Uint8Array(Buffer.concat(pieces)));
  }

  async get(key: string, range?: readonly [number, number]): Promise<Uint8Array | undefined> {
    this.#note('get', key);
    const bytes = this.objects.get(key);
    return range === undefined ? bytes : bytes?.subarray(...range);
  }

  async stream(key: string): Promise<AsyncIterable<Uint8Array> | undefined> {
    const bytes = await this.get(key);
    return bytes && piecesOf(bytes);
  }

  async head(key: string): Promise<number | undefined> {
    this.#note('head', key);
    return this.objects.get(key)?.byteLength;
  }

  async list(prefix: string): Promise<string[]> {
    return this.#pages(prefix, [...this.#under(prefix)].sort());
  }

  async children(prefix: string): Promise<string[]> {
    const names = new Set<string>();
    for (const key of this.#under(prefix)) {
      const end = key.indexOf('/', prefix.length);
      names.add(key.slice(prefix.length, end === -1 ? undefined : end + 1));
    }
    return this.#pages(prefix, [...names].sort());
  }

  async remove(key: string): Promise<void> {
    this.#note('remove', key);
    if (key.endsWith('/')) for (const one of [...this.#under(key)]) this.objects.delete(one);
    else this.objects.delete(key);
  }

  async settle(): Promise<void> {}

  localPath(): undefined {
    return undefined;
  }

  *#under(prefix: string): Generator<string> {
    for (const key of this.objects.keys()) if (key.startsWith(prefix)) yield key;
  }

  #pages(prefix: string, names: string[]): string[] {
    for (let shown = 0; shown === 0 || shown < names.length; shown += pageSize) this.#note('list', prefix);
    return names;
  }

  #note(what: string, key: string): void {
    this.#requests.push(`${what} ${key}`);
  }
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
